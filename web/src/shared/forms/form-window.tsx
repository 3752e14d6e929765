import { Button, Group, Modal, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { TEXT } from '../text.ts'

/** A window with fields and one button; the server's sentence stands above the buttons. */
export function FormWindow(props: {
  title: string
  submit: string
  busy: boolean
  isComplete: boolean
  error: Error | null
  onSubmit: () => void
  onClose: () => void
  children: ReactNode
}) {
  const { title, submit, busy, isComplete, error, onSubmit, onClose, children } = props
  return (
    <Modal opened onClose={onClose} title={<strong>{title}</strong>} centered>
      <form
        className="form-window"
        onSubmit={(event) => {
          event.preventDefault()
          if (isComplete && !busy) onSubmit()
        }}
      >
        {children}
        {error && (
          <Text size="sm" c="red" role="alert" className="breakable">
            {error.message}
          </Text>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {TEXT.cancel}
          </Button>
          <Button type="submit" loading={busy} disabled={!isComplete}>
            {submit}
          </Button>
        </Group>
      </form>
    </Modal>
  )
}
