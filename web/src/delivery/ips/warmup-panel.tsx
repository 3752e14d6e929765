import { Badge, Group, Progress, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMay } from '../../session.ts'
import { Count } from '../../shared/copyable.tsx'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { type Column, DataTable } from '../../shared/page/data-table.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { Failure } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import {
  cancelWarmup,
  IPS_KEY,
  pauseWarmup,
  resumeWarmup,
  startWarmup,
  type WarmupProgress,
  warmupQuery,
} from './ips-api.ts'
import { TEXT } from './text.ts'
import { WarmupPicture } from './warmup-picture.tsx'

/** The warm-up of a dedicated address: how far it is, also at each provider; start, pause and cancel. */
export function WarmupPanel({ ip }: { ip: string }) {
  const mayChange = useMay({ area: 'ips', access: 'write' })
  const { data, error, refetch, isPending } = useQuery(warmupQuery(ip))
  return (
    <Panel
      title={TEXT.warmup}
      beside={
        mayChange &&
        (data ? (
          <Group gap="xs">
            <PauseWarmup ip={ip} isPaused={data.paused_at !== null} />
            <CancelWarmup ip={ip} />
          </Group>
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
          {data.paused_at !== null && (
            <Text size="sm" mt="xs">
              <PausedBadge /> {TEXT.pausedSince} <Time at={data.paused_at} />. {TEXT.pausedWhy}
            </Text>
          )}
          <Providers warmup={data} />
        </>
      )}
    </Panel>
  )
}

type ProviderPlan = WarmupProgress['providers'][number]

const nameOf = (provider: string) => (provider === '*' ? TEXT.otherProviders : provider)

/** How far the warm-up is at each provider. */
function Providers({ warmup: { providers, total_stages } }: { warmup: WarmupProgress }) {
  const columns: Column<ProviderPlan>[] = [
    {
      header: TEXT.provider,
      cell: ({ provider }) => <strong className="breakable">{nameOf(provider)}</strong>,
    },
    { header: TEXT.stage, cell: ({ stage_number }) => TEXT.stageOf(stage_number, total_stages) },
    {
      header: TEXT.sent,
      width: '34%',
      cell: ({ provider, ...stage }) => <SentShare of={nameOf(provider)} {...stage} />,
    },
    { header: TEXT.throttle, align: 'end', wideOnly: true, cell: ({ throttle }) => `${throttle}%` },
    { header: TEXT.sentInAll, align: 'end', cell: ({ sent }) => <Count value={sent} /> },
  ]
  return (
    <section aria-label={TEXT.byProvider} className="warmup-providers">
      <h3>{TEXT.byProvider}</h3>
      <Text size="sm" c="dimmed">
        {providers.length === 0 ? TEXT.noProviders : TEXT.byProviderWhy}
      </Text>
      {providers.length > 0 && (
        <DataTable
          label={TEXT.byProvider}
          columns={columns}
          rows={providers}
          rowKey={({ provider }) => provider}
          empty={null}
        />
      )}
    </section>
  )
}

/** How much of a stage's limit was sent in the present 24 hours. */
export function SentShare(props: { of: string; sent_within_stage: string; stage_volume_limit: number }) {
  const { of, sent_within_stage: share, stage_volume_limit } = props
  return (
    <div>
      <Progress value={Number.parseInt(share, 10)} aria-label={`${TEXT.sent}: ${of}`} />
      <div className="dimmed queue-small">{TEXT.today(share, stage_volume_limit)}</div>
    </div>
  )
}

export const PausedBadge = () => (
  <Badge variant="light" tt="none" fw={550} color="orange">
    {TEXT.pausedState}
  </Badge>
)

export const PauseWarmup = ({ ip, isPaused }: { ip: string; isPaused: boolean }) =>
  isPaused ? (
    <ActionButton
      label={TEXT.resume}
      name={TEXT.resumeOf(ip)}
      run={() => resumeWarmup(ip)}
      done={TEXT.resumed(ip)}
      undo={() => pauseWarmup(ip)}
      undone={TEXT.paused(ip)}
      changes={IPS_KEY}
    />
  ) : (
    <ActionButton
      label={TEXT.pause}
      name={TEXT.pauseOf(ip)}
      run={() => pauseWarmup(ip)}
      done={TEXT.paused(ip)}
      undo={() => resumeWarmup(ip)}
      undone={TEXT.resumed(ip)}
      changes={IPS_KEY}
    />
  )

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
