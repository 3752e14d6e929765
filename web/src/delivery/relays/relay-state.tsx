/** What a relay does now: whether it is used, what it has done, and its pause. */
import { Badge, Button, NativeSelect, Text, TextInput } from '@mantine/core'
import { ActionButton, useTakeBack } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import { Time } from '../../shared/time.tsx'
import { StoppedState } from '../orders/order-windows.tsx'
import { TEXT as ORDERS } from '../orders/text.ts'
import { pauseAgain, pauseRelay, RELAYS_KEY, type Relay, resumeRelay } from './relays-api.ts'
import { STATE as TEXT } from './text.ts'

const COLORS = { open: 'teal', closed: 'red', probing: 'orange' } as const

/** A pause and a failure can hold at the same time. */
export function RelayState({ relay: { state, pause, since_start } }: { relay: Relay }) {
  const { word, why, since, until, times } = state
  return (
    <div>
      {pause !== null && <StoppedState pause={pause} word={TEXT.paused} />}
      {(pause === null || word !== 'open') && (
        <Badge variant="light" tt="none" fw={550} color={COLORS[word]}>
          {TEXT.words[word]}
        </Badge>
      )}
      {word === 'closed' && until !== null && (
        <>
          {' '}
          <span className="queue-nowrap">
            {TEXT.until} <Time at={until} />
          </span>
        </>
      )}
      {why !== null && <div className="dimmed queue-small breakable">{why}</div>}
      {since !== null && (
        <div className="dimmed queue-small">
          {TEXT.closedSince} <Time at={since} />
          {times > 1 && `, ${TEXT.times(times)}`}
        </div>
      )}
      <div className="dimmed queue-small">{TEXT.sinceStart(since_start.accepted, since_start.failed)}</div>
    </div>
  )
}

/** Pauses it, or ends its pause. */
export function PauseButton({ relay, onPause }: { relay: Relay; onPause: () => void }) {
  const { name, pause } = relay
  if (pause === null)
    return (
      <Button variant="default" size="xs" aria-label={TEXT.pauseOf(name)} onClick={onPause}>
        {TEXT.pause}
      </Button>
    )
  return (
    <ActionButton
      label={TEXT.resume}
      name={TEXT.resumeOf(name)}
      run={() => resumeRelay(name)}
      done={TEXT.resumed(name)}
      undo={() => pauseAgain(name, pause)}
      undone={TEXT.pausedNow(name)}
      changes={RELAYS_KEY}
    />
  )
}

export function PauseWindow({ name, onClose }: { name: string; onClose: () => void }) {
  const takeBack = useTakeBack(RELAYS_KEY)
  const form = useForm({
    initial: { reason: '', until: '' },
    send: ({ reason, until }) => pauseRelay(name, reason.trim(), until),
    changes: RELAYS_KEY,
    onDone() {
      const back = () => takeBack(() => resumeRelay(name), TEXT.resumed(name))
      notify({ text: TEXT.pausedNow(name), undo: () => void back() })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.pauseTitle(name)}
      submit={TEXT.pause}
      isComplete
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.pauseWhy}</Text>
      <TextInput
        label={ORDERS.reason}
        autoComplete="off"
        maxLength={1000}
        {...form.field('reason')}
        data-autofocus
      />
      <NativeSelect
        label={ORDERS.until}
        data={ORDERS.untils.map(([value, label]) => ({ value, label }))}
        {...form.field('until')}
      />
    </FormWindow>
  )
}
