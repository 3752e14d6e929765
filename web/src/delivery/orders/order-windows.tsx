import { Badge, Button, Group, NativeSelect, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMay } from '../../session.ts'
import { ActionButton, useTakeBack } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import {
  ORDERS_KEY,
  type Override,
  orderLimits,
  type Pause,
  pauseAgain,
  pauseSite,
  resetLimits,
  resumeSite,
  secondsTo,
  shapingQuery,
} from '../../shared/orders-api.ts'
import { notify } from '../../shared/page/notices.tsx'
import { ResumeSite } from '../../shared/resume-site.tsx'
import { siteName } from '../../shared/site-names.ts'
import { ORDER_TEXT } from '../../shared/text.ts'
import { Time } from '../../shared/time.tsx'
import { rateWords, TEXT } from './text.ts'

/** Whether the caller may give orders. */
export const useMayOrder = () => useMay({ area: 'domains', access: 'write', only: 'first' })

const options = (untils: readonly (readonly [string, string])[]) =>
  untils.map(([value, label]) => ({ value, label }))

/** `site` '': asks for one. `name`: as people know it. */
export function StopWindow(props: { site: string; name?: string; onClose: () => void }) {
  const { site, name = siteName(site), onClose } = props
  const queries = useQueryClient()
  const takeBack = useTakeBack(ORDERS_KEY)
  const form = useForm({
    initial: { site, reason: '', until: '' },
    async send(given) {
      const stopped = given.site.trim().toLowerCase() // as the service names it
      const { overrides = [] } = queries.getQueryData(shapingQuery.queryKey) ?? {}
      const before = overrides.find((each) => each.site === stopped)?.pause ?? null
      await pauseSite(stopped, given.reason.trim(), given.until)
      return { stopped, before }
    },
    changes: ORDERS_KEY,
    onDone({ stopped, before }) {
      const back = () => (before === null ? resumeSite(stopped) : pauseAgain(stopped, before))
      const after = before === null ? ORDER_TEXT.resumed(siteName(stopped)) : TEXT.restored
      notify({ text: ORDER_TEXT.stoppedNow(siteName(stopped)), undo: () => void takeBack(back, after) })
      onClose()
    },
  })
  return (
    <FormWindow
      title={site === '' ? TEXT.stopTitle : TEXT.stopTitleOf(name)}
      submit={TEXT.stopSubmit}
      isComplete={form.values.site.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.stopWhy}</Text>
      {site === '' && (
        <TextInput
          label={TEXT.site}
          placeholder={TEXT.sitePlaceholder}
          {...EXACT}
          {...form.field('site')}
          data-autofocus
        />
      )}
      <TextInput
        label={TEXT.reason}
        autoComplete="off"
        maxLength={1000}
        {...form.field('reason')}
        {...(site !== '' && { 'data-autofocus': true })}
      />
      <NativeSelect label={TEXT.until} data={options(TEXT.untils)} {...form.field('until')} />
    </FormWindow>
  )
}

/** What is ordered now, and what the shaping says, stand in the fields. */
export function LimitsWindow(props: {
  site: string
  name?: string
  override: Override | null
  onClose: () => void
}) {
  const { site, name = siteName(site), override, onClose } = props
  const mayRead = useMay({ area: 'account', only: 'first' })
  const { data } = useQuery({ ...shapingQuery, enabled: mayRead })
  const shaped = data && (data.providers.find((each) => each.site === site) ?? data.default)
  const [count = '', span = '1m'] = override?.limits?.rate?.split('/') ?? []
  const isNone = override?.limits?.rate === 'none'
  const form = useForm({
    initial: {
      connections: String(override?.limits?.connections ?? ''),
      count: isNone ? '' : count,
      unit: isNone ? 'none' : span,
      until: '',
    },
    send({ connections, count: messages, unit, until }) {
      const rate = unit === 'none' ? 'none' : messages.trim() === '' ? '' : `${messages.trim()}/${unit}`
      return orderLimits(site, connections.trim(), rate, until)
    },
    changes: ORDERS_KEY,
    onDone() {
      notify({ text: TEXT.saved(siteName(site)) })
      onClose()
    },
  })
  const { connections, count: messages, unit } = form.values
  const units = [
    ...options(TEXT.units),
    ...(TEXT.units.some(([value]) => value === unit) ? [] : [{ value: unit, label: unit }]),
  ]
  return (
    <FormWindow
      title={TEXT.limitsTitle(name)}
      submit={TEXT.save}
      isComplete={connections.trim() !== '' || messages.trim() !== '' || unit === 'none'}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.limitsWhy}</Text>
      <Group grow align="flex-start">
        <TextInput
          label={TEXT.rateLabel}
          description={shaped ? TEXT.asShaped(rateWords(shaped.messages_per_second)) : '\u00a0'}
          inputMode="numeric"
          autoComplete="off"
          disabled={unit === 'none'}
          {...form.field('count')}
          data-autofocus
        />
        <NativeSelect label={TEXT.rateUnit} description={'\u00a0'} data={units} {...form.field('unit')} />
      </Group>
      <TextInput
        label={TEXT.connectionsLabel}
        description={shaped ? TEXT.asShaped(String(shaped.connections)) : '\u00a0'}
        inputMode="numeric"
        autoComplete="off"
        {...form.field('connections')}
      />
      <NativeSelect label={TEXT.until} data={options(TEXT.limitsUntils)} {...form.field('until')} />
    </FormWindow>
  )
}

/** Stops or resumes a site, and changes or resets its limits. */
export function OrderButtons(props: {
  site: string
  name: string
  override: Override | null
  onStop: () => void
  onLimits: () => void
}) {
  const { site, name, override, onStop, onLimits } = props
  const { pause = null, limits = null } = override ?? {}
  return (
    <Group gap="xs" justify="flex-end">
      {pause === null ? (
        <Button variant="default" size="xs" aria-label={TEXT.stopOf(name)} onClick={onStop}>
          {TEXT.stop}
        </Button>
      ) : (
        <ResumeSite site={site} name={name} pause={pause} />
      )}
      <Button variant="default" size="xs" aria-label={TEXT.limitsOf(name)} onClick={onLimits}>
        {TEXT.limits}
      </Button>
      {limits !== null && (
        <ActionButton
          label={TEXT.reset}
          name={TEXT.resetOf(name)}
          run={() => resetLimits(site)}
          done={TEXT.resetDone(siteName(site))}
          undo={() =>
            orderLimits(site, String(limits.connections ?? ''), limits.rate ?? '', secondsTo(limits.until))
          }
          undone={TEXT.restored}
          changes={ORDERS_KEY}
        />
      )}
    </Group>
  )
}

/** That a site is stopped, until when and why. `word`: what it is called. */
export function StoppedState({ pause, word = TEXT.stopped }: { pause: Omit<Pause, 'since'>; word?: string }) {
  return (
    <div>
      <Badge variant="light" tt="none" fw={550} color="red">
        {word}
      </Badge>{' '}
      {pause.until !== null && (
        <span className="queue-nowrap">
          {ORDER_TEXT.stoppedUntil} <Time at={pause.until} />
        </span>
      )}
      {pause.reason !== '' && <div className="dimmed queue-small breakable">{pause.reason}</div>}
    </div>
  )
}
