/** Warm-ups that run. Calls /v3/ip_warmups. */
import { Button, Group, NativeSelect, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Icon } from '../../look/icons.tsx'
import { useMay } from '../../session.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { TEXT as SECTION } from '../text.ts'
import { IPS_KEY, ipsQuery, type ListedWarmup, startWarmup, warmupsQuery } from './ips-api.ts'
import { TEXT } from './text.ts'
import { CancelWarmup, PausedBadge, PauseWarmup, SentShare } from './warmup-panel.tsx'
import '../delivery.css'

const route = getRouteApi('/delivery/warmups')

export default function WarmupsPage() {
  const { add } = route.useSearch()
  const navigate = useNavigate({ from: '/delivery/warmups' })
  const mayChange = useMay({ area: 'ips', access: 'write' })
  const list = useQuery(warmupsQuery)
  const setAdding = (adding: boolean) =>
    void navigate({ replace: true, search: adding ? { add: 'yes' } : {} })
  const button = mayChange && (
    <Button leftSection={<Icon name="play" size={16} />} onClick={() => setAdding(true)}>
      {TEXT.start}
    </Button>
  )
  const columns: Column<ListedWarmup>[] = [
    {
      header: TEXT.ip,
      cell: ({ ip }) => (
        <Link to="/delivery/ips/$ip" params={{ ip }} className="row-link breakable">
          {ip}
        </Link>
      ),
    },
    {
      header: TEXT.stage,
      cell: ({ stage_number, paused_at }) => (
        <>
          {stage_number} {paused_at && <PausedBadge />}
        </>
      ),
    },
    {
      header: TEXT.sent,
      width: '34%',
      cell: ({ ip, ...stage }) => <SentShare of={ip} {...stage} />,
    },
    { header: TEXT.throttle, align: 'end', wideOnly: true, cell: ({ throttle }) => `${throttle}%` },
    {
      header: TEXT.since,
      cell: ({ stage_start_time }) => <Time at={stage_start_time} as="age" />,
    },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: ({ ip, paused_at }: ListedWarmup) => (
              <Group gap="xs" justify="flex-end" wrap="nowrap">
                {paused_at !== undefined && <PauseWarmup ip={ip} isPaused={paused_at !== null} />}
                <CancelWarmup ip={ip} />
              </Group>
            ),
          },
        ]
      : []),
  ]
  return (
    <ListPage
      title={TEXT.warmups}
      lead={TEXT.warmupsLead}
      back={{ to: '/delivery', label: SECTION.title }}
      actions={button}
      list={list}
      rows={list.data}
      rowKey={({ ip }) => ip}
      columns={columns}
      empty={
        <EmptyState icon="chart" title={TEXT.noWarmups} action={button}>
          {TEXT.noWarmupsWhy}
        </EmptyState>
      }
    >
      {mayChange && add === 'yes' && <StartForm onClose={() => setAdding(false)} />}
    </ListPage>
  )
}

function StartForm({ onClose }: { onClose: () => void }) {
  const ips = useQuery(ipsQuery)
  const form = useForm({
    initial: { ip: '' },
    send: ({ ip }) => startWarmup(ip),
    changes: IPS_KEY,
    onDone(_, { ip }) {
      notify({ text: TEXT.startedWarmup(ip) })
      onClose()
    },
  })
  const cold = (ips.data ?? []).filter(({ dedicated, is_on_warmup }) => dedicated && !is_on_warmup)
  return (
    <FormWindow
      title={TEXT.start}
      submit={TEXT.startIt}
      isComplete={form.values.ip !== ''}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.warmupWhy}</Text>
      <NativeSelect
        label={TEXT.ip}
        data={[{ value: '', label: TEXT.chooseIp }, ...cold.map(({ ip }) => ({ value: ip, label: ip }))]}
        {...form.field('ip')}
        data-autofocus
      />
    </FormWindow>
  )
}
