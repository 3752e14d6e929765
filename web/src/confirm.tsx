import { Button, Group, Modal, Text } from '@mantine/core'

/** Asks before something that cannot be undone; Enter confirms, Escape leaves everything as it is. */
export function Confirm(props: {
  opened: boolean
  title: string
  consequence: string
  action: string
  busy: boolean
  failure: string | undefined
  onConfirm: () => void
  onClose: () => void
}) {
  return (
    <Modal opened={props.opened} onClose={props.onClose} title={<strong>{props.title}</strong>} centered>
      <Text size="sm">{props.consequence}</Text>
      {props.failure && (
        <Text size="sm" c="red" mt="sm" role="alert">
          {props.failure}
        </Text>
      )}
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={props.onClose}>
          Cancel
        </Button>
        <Button color="red" loading={props.busy} onClick={props.onConfirm} data-autofocus>
          {props.action}
        </Button>
      </Group>
    </Modal>
  )
}
