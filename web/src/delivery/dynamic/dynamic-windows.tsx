import { NativeSelect, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { same } from '../../shared/forms/choices.ts'
import { Chooser } from '../../shared/forms/chooser.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import { freeIpsQuery, IPS_KEY } from '../ips/ips-api.ts'
import { poolsQuery as ipPoolsQuery } from '../pools/pools-api.ts'
import {
  assignableQuery,
  BANDS,
  type Band,
  type DynamicPool,
  enroll,
  leave,
  setPools,
} from './dynamic-api.ts'
import { TEXT } from './text.ts'

export function EnrollForm({ onClose }: { onClose: () => void }) {
  const domains = useQuery(assignableQuery)
  const form = useForm({
    initial: { domain: '' },
    send: ({ domain }) => enroll(domain),
    changes: IPS_KEY,
    onDone(_, { domain }) {
      notify({ text: TEXT.enrolled(domain) })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.enroll}
      submit={TEXT.enrollSubmit}
      isComplete={form.values.domain !== ''}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.enrollWhy}</Text>
      <Chooser
        label={TEXT.domain}
        showLabel
        options={(domains.data ?? []).map(({ name }) => same(name))}
        value={form.values.domain}
        onChange={(domain) => form.set({ domain })}
        autoFocus
      />
    </FormWindow>
  )
}

export function LeaveForm({ domain, onClose }: { domain: string; onClose: () => void }) {
  const free = useQuery(freeIpsQuery)
  const pools = useQuery(ipPoolsQuery)
  const form = useForm({
    initial: { replacement: 'shared' },
    send: ({ replacement }) => leave(domain, replacement),
    changes: IPS_KEY,
    onDone() {
      notify({ text: TEXT.left(domain) })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.leaveTitle(domain)}
      submit={TEXT.leave}
      isComplete
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.leaveWhy}</Text>
      <Chooser
        label={TEXT.replacement}
        showLabel
        options={[
          { value: 'shared', label: TEXT.replacementShared },
          ...(free.data ?? []).map(same),
          ...(pools.data ?? [])
            .filter(({ ips }) => ips.length > 0)
            .map(({ pool_id, name }) => ({ value: `pool:${pool_id}`, label: TEXT.replacementPool(name) })),
        ]}
        value={form.values.replacement}
        onChange={(replacement) => form.set({ replacement })}
        autoFocus
      />
    </FormWindow>
  )
}

/** Which set each address is in: those that are in one now, and free ones. */
export function SetsForm({ pools, onClose }: { pools: readonly DynamicPool[]; onClose: () => void }) {
  const free = useQuery(freeIpsQuery)
  const form = useForm({
    initial: Object.fromEntries(pools.flatMap(({ name, ips }) => ips.map((ip) => [ip, name]))) as Record<
      string,
      string
    >,
    send(bandOf) {
      const of = (band: Band) => Object.keys(bandOf).filter((ip) => bandOf[ip] === band)
      return setPools({
        dynamic_good: of('dynamic_good'),
        dynamic_new: of('dynamic_new'),
        dynamic_poor: of('dynamic_poor'),
      })
    },
    changes: IPS_KEY,
    onDone() {
      notify({ text: TEXT.saved })
      onClose()
    },
  })
  const ips = [...new Set([...pools.flatMap((pool) => pool.ips), ...(free.data ?? [])])]
  const chosen = Object.values(form.values)
  return (
    <FormWindow
      title={TEXT.set}
      submit={TEXT.save}
      isComplete={BANDS.every((band) => chosen.includes(band))}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.notSetWhy}</Text>
      {free.data && ips.length === 0 && <Text size="sm">{TEXT.noFree}</Text>}
      {ips.map((ip) => (
        <NativeSelect
          key={ip}
          label={TEXT.inSet(ip)}
          data={[
            { value: '', label: TEXT.none },
            ...BANDS.map((band) => ({ value: band, label: TEXT.bands[band] })),
          ]}
          value={form.values[ip] ?? ''}
          onChange={(event) => form.set({ [ip]: event.currentTarget.value })}
        />
      ))}
    </FormWindow>
  )
}
