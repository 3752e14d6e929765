import { ActionIcon } from '@mantine/core'
import { useState } from 'react'
import { Confirm } from '../../base/confirm.tsx'
import { Icon } from '../../look/icons.tsx'
import { useSending } from './use-sending.ts'

interface RemoveIconProps {
  label: string
  /** The window that asks first. */
  ask: { title: string; consequence: string; action: string; mustType?: string }
  run: () => Promise<unknown>
  /** Leaves the page, which shows what is no longer there. */
  onDone: () => Promise<void>
}

/** The bin of a page: removes what the page shows. */
export function RemoveIcon({ label, ask, run, onDone }: RemoveIconProps) {
  const [asking, setAsking] = useState(false)
  const removal = useSending({ mutationFn: run, onSuccess: onDone })
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        title={label}
        onClick={() => setAsking(true)}
      >
        <Icon name="trash" />
      </ActionIcon>
      <Confirm
        opened={asking}
        {...ask}
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => removal.mutate()}
        onClose={() => {
          setAsking(false)
          removal.reset()
        }}
      />
    </>
  )
}
