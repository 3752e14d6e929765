import { Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMay } from '../../session.ts'
import { ActionButton } from '../../shared/action-button.tsx'
import { Panel } from '../../shared/page.tsx'
import { Failure } from '../../shared/states.tsx'
import { Time } from '../../shared/time.tsx'
import { cancelWarmup, IPS_KEY, startWarmup, warmupQuery } from './ips-api.ts'
import { TEXT } from './text.ts'
import { WarmupPicture } from './warmup-picture.tsx'

/** The warm-up of a dedicated address: how far it is, start and cancel. */
export function WarmupPanel({ ip }: { ip: string }) {
  const mayChange = useMay({ area: 'ips', access: 'write' })
  const { data, error, refetch, isPending } = useQuery(warmupQuery(ip))
  return (
    <Panel
      title={TEXT.warmup}
      beside={
        mayChange &&
        (data ? (
          <CancelWarmup ip={ip} />
        ) : (
          data === null && (
            <ActionButton
              label={TEXT.start}
              run={() => startWarmup(ip)}
              done={TEXT.startedWarmup(ip)}
              undo={() => cancelWarmup(ip)}
              undone={TEXT.cancelled(ip)}
              changes={IPS_KEY}
            />
          )
        ))
      }
    >
      <Text size="sm" c="dimmed" mb="sm">
        {TEXT.warmupWhy}
      </Text>
      {isPending && <Skeleton height={120} />}
      {error && <Failure title={TEXT.warmup} error={error} retry={refetch} />}
      {data === null && <Text size="sm">{TEXT.notWarming}</Text>}
      {data && (
        <>
          <WarmupPicture warmup={data} />
          <Text size="sm">
            <strong>{TEXT.stageOf(data.stage_number, data.total_stages)}</strong>:{' '}
            {TEXT.today(data.sent_within_stage, data.stage_volume_limit)}, {TEXT.hourly(data.hourly_limit)}.{' '}
            {TEXT.since} <Time at={data.plan_started_at} as="date" />.
          </Text>
        </>
      )}
    </Panel>
  )
}

export const CancelWarmup = ({ ip }: { ip: string }) => (
  <ActionButton
    label={TEXT.cancel}
    name={TEXT.cancelOf(ip)}
    run={() => cancelWarmup(ip)}
    done={TEXT.cancelled(ip)}
    changes={IPS_KEY}
    ask={{ title: TEXT.cancelTitle, consequence: TEXT.cancelWhy }}
  />
)
