/** A button that makes one change, says the result, and offers to take it back. */
import { Button, type ButtonProps, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Confirm } from '../../base/confirm.tsx'
import { notify } from '../page/notices.tsx'
import { useSending } from './use-sending.ts'

interface ActionButtonProps<Result> extends Pick<ButtonProps, 'size' | 'variant' | 'color' | 'disabled'> {
  label: string
  /** Read by screen readers where the label does not say what it acts on. */
  name?: string
  run: () => Promise<Result>
  /** The notice after it. */
  done: string | ((result: Result) => string)
  /** Takes it back; for what can be. */
  undo?: () => Promise<unknown>
  /** The notice after that. */
  undone?: string
  /** Prefix of the queries that it concerns: they are asked again. */
  changes: string
  /** Beside the notice. */
  onDone?: (result: Result) => void
  /** Asks first; for what cannot be taken back. */
  ask?: { title: string; consequence: string; mustType?: string }
}

/** A button of a row or page: does something, says so, and shows the server's refusal below itself. */
export function ActionButton<Result>(props: ActionButtonProps<Result>) {
  const { label, name, run, done, undo, undone, changes, onDone, ask, ...look } = props
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const changed = () => void queries.invalidateQueries({ queryKey: [changes] })
  const takeBack = useTakeBack(changes)
  const action = useSending({
    mutationFn: run,
    onSuccess(result) {
      setAsking(false)
      notify({
        text: typeof done === 'string' ? done : done(result),
        ...(undo && { undo: () => void takeBack(undo, undone) }),
      })
      changed()
      onDone?.(result)
    },
  })
  return (
    <>
      <Button
        variant="default"
        size="xs"
        {...look}
        {...(name !== undefined && { 'aria-label': name })}
        loading={action.isPending && ask === undefined}
        onClick={() => (ask === undefined ? action.mutate() : setAsking(true))}
      >
        {label}
      </Button>
      {ask === undefined && action.error && <Refusal error={action.error} />}
      {ask !== undefined && (
        <Confirm
          opened={asking}
          {...ask}
          action={label}
          busy={action.isPending}
          failure={action.error?.message}
          onConfirm={() => action.mutate()}
          onClose={() => {
            setAsking(false)
            action.reset()
          }}
        />
      )}
    </>
  )
}

/** What the undo of a notice does: takes back, says so or the server's refusal, and asks the queries again. */
export function useTakeBack(changes: string) {
  const queries = useQueryClient()
  return async (back: () => Promise<unknown>, undone: string | undefined) => {
    const result = await back().catch((error: Error) => error)
    if (result instanceof Error) notify({ text: result.message, tone: 'bad' })
    else if (undone !== undefined) notify({ text: undone })
    void queries.invalidateQueries({ queryKey: [changes] })
  }
}

/** The server's sentence about something small. */
export const Refusal = ({ error }: { error: Error }) => (
  <Text size="xs" c="red" role="alert" className="breakable">
    {error.message}
  </Text>
)
