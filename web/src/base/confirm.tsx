import { Button, Group, Modal, Text, TextInput } from '@mantine/core'
import { useState } from 'react'

interface ConfirmProps {
  opened: boolean
  title: string
  consequence: string
  action: string
  busy: boolean
  failure: string | undefined
  /** Text to type before the action is possible, for the most harmful mistakes. */
  mustType?: string
  onConfirm: () => void
  onClose: () => void
}

/** Asks for confirmation of an irreversible action; Enter confirms, Escape cancels. */
export function Confirm(props: ConfirmProps) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={<strong>{props.title}</strong>} centered>
      <ConfirmForm {...props} />
    </Modal>
  )
}

/** A separate component, so that closing the window clears its text. */
function ConfirmForm({ mustType, ...props }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const isMeant = mustType === undefined || typed.trim() === mustType
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isMeant && !props.busy) props.onConfirm()
      }}
    >
      <Text size="sm">{props.consequence}</Text>
      {mustType !== undefined && (
        <TextInput
          mt="md"
          label={
            <>
              Type <strong className="breakable">{mustType}</strong> to confirm
            </>
          }
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          data-autofocus
        />
      )}
      {props.failure && (
        <Text size="sm" c="red" mt="sm" role="alert">
          {props.failure}
        </Text>
      )}
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={props.onClose}>
          Cancel
        </Button>
        <Button
          type="submit"
          color="red"
          loading={props.busy}
          disabled={!isMeant}
          {...(mustType === undefined && { 'data-autofocus': true })}
        >
          {props.action}
        </Button>
      </Group>
    </form>
  )
}
