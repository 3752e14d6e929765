/** Buttons of one message: try now, hold, release, cancel, send again. */
import { Button, Group, Modal, Text, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Confirm } from '../base/confirm.tsx'
import { Icon } from '../look/icons.tsx'
import { valueOrThrow } from '../queries.ts'
import { useMay } from '../session.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { notify } from '../shared/page/notices.tsx'
import {
  actOnMessage,
  cancelScheduled,
  type DeliveryView,
  type LogItem,
  type QueueAction,
  resend,
} from './activity-api.ts'
import { isOpen, messageKey } from './message-queries.ts'
import { MESSAGE_TEXT as TEXT } from './text.ts'

/** What can be done about a message now; buttons that would do nothing are left out. */
export function MessageActions(props: {
  id: string
  head: LogItem
  /** The deliveries on the page. */
  deliveries: readonly DeliveryView[]
  isStored: boolean
}) {
  const { id, head, deliveries, isStored } = props
  const mayChange = useMay({ area: 'domains', access: 'write' })
  const maySend = useMay({ area: 'messages:send', access: 'write' })
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: messageKey(id) })
  const open = deliveries.filter(isOpen)
  const isScheduled =
    open.length > 0 && open.every(({ state, attempts }) => state === 'scheduled' && attempts === 0)
  const isPaused = open.some(({ reason }) => reason.code === 'paused')
  const waits = open.some(({ state }) => state === 'queued')

  const action = useSending({
    mutationFn: async (name: QueueAction) => {
      const { changed } = valueOrThrow(await actOnMessage(name, id))
      return { name, changed }
    },
    async onSuccess({ name, changed }) {
      await refresh()
      // Last, as its undo is another call: one that is made while this is under way does nothing.
      notify({ text: changed === 0 ? TEXT.nothingChanged : saysOf(name, changed), ...undoOf(name) })
    },
  })
  const undoOf = (name: QueueAction) => {
    const opposite = ({ pause: 'resume', resume: 'pause' } as const)[name as 'pause' | 'resume']
    return opposite === undefined ? {} : { undo: () => action.mutate(opposite) }
  }
  const cancel = useSending({
    mutationFn: async () =>
      isScheduled ? valueOrThrow(await cancelScheduled(id)) : valueOrThrow(await actOnMessage('drop', id)),
    onSuccess() {
      setAsking(false)
      notify({ text: TEXT.cancelled })
      return refresh()
    },
  })
  const mayCancel = open.length > 0 && (isScheduled ? maySend : mayChange)
  return (
    <>
      <Group gap="xs" mt="md">
        {waits && !isPaused && mayChange && (
          <Button
            size="sm"
            leftSection={<Icon name="refresh" size={16} />}
            loading={action.isPending}
            onClick={() => action.mutate('retry')}
          >
            {TEXT.retry}
          </Button>
        )}
        {isPaused && mayChange && (
          <Button
            size="sm"
            leftSection={<Icon name="play" size={16} />}
            loading={action.isPending}
            onClick={() => action.mutate('resume')}
          >
            {TEXT.resume}
          </Button>
        )}
        {isStored && maySend && head.storage && <Resend head={head} storageKey={head.storage.key} />}
        {waits && !isPaused && mayChange && (
          <Button
            size="sm"
            variant="default"
            leftSection={<Icon name="pause" size={16} />}
            onClick={() => action.mutate('pause')}
          >
            {TEXT.pause}
          </Button>
        )}
        {mayCancel && (
          <Button
            size="sm"
            variant="default"
            leftSection={<Icon name="cross" size={16} />}
            onClick={() => setAsking(true)}
          >
            {TEXT.cancel}
          </Button>
        )}
      </Group>
      {action.error && (
        <Text size="sm" c="red" mt="xs" role="alert">
          {action.error.message}
        </Text>
      )}
      <Confirm
        opened={asking}
        title={TEXT.cancelTitle}
        consequence={TEXT.cancelWhy}
        action={TEXT.cancel}
        busy={cancel.isPending}
        failure={cancel.error?.message}
        onConfirm={() => cancel.mutate()}
        onClose={() => {
          setAsking(false)
          cancel.reset()
        }}
      />
    </>
  )
}

const saysOf = (name: QueueAction, changed: number) =>
  name === 'retry'
    ? TEXT.retried(changed)
    : { drop: TEXT.cancelled, pause: TEXT.paused, resume: TEXT.resumed }[name]

function Resend({ head, storageKey }: { head: LogItem; storageKey: string }) {
  const [opened, setOpened] = useState(false)
  return (
    <>
      <Button
        size="sm"
        variant="default"
        leftSection={<Icon name="send" size={16} />}
        onClick={() => setOpened(true)}
      >
        {TEXT.resend}
      </Button>
      <Modal
        opened={opened}
        onClose={() => setOpened(false)}
        title={<strong>{TEXT.resendTitle}</strong>}
        centered
      >
        <ResendForm head={head} storageKey={storageKey} onClose={() => setOpened(false)} />
      </Modal>
    </>
  )
}

function ResendForm(props: { head: LogItem; storageKey: string; onClose: () => void }) {
  const { head, storageKey, onClose } = props
  const [to, setTo] = useState(head.recipient ?? '')
  const queries = useQueryClient()
  const navigate = useNavigate({ from: '/activity/$id' })
  const sending = useSending({
    mutationFn: async () => valueOrThrow(await resend(head.domain.name, storageKey, to)),
    async onSuccess() {
      onClose()
      notify({ text: TEXT.resent(to.trim()) })
      // The message keeps its id: the new recipient joins the others.
      await navigate({ replace: true, search: (search) => ({ ...search, recipient: to.trim() }) })
      await queries.invalidateQueries({ queryKey: messageKey(head.message?.headers['message-id'] ?? '') })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!sending.isPending) sending.mutate()
      }}
    >
      <TextInput
        label={TEXT.resendTo}
        description={TEXT.resendHelp}
        value={to}
        error={sending.error?.message}
        onChange={(event) => {
          setTo(event.currentTarget.value)
          sending.reset()
        }}
        autoComplete="off"
        spellCheck={false}
        inputMode="email"
        data-autofocus
      />
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.close}
        </Button>
        <Button type="submit" loading={sending.isPending} disabled={to.trim() === ''}>
          {TEXT.resend}
        </Button>
      </Group>
    </form>
  )
}
