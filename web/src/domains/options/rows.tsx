/** Rows of the panels of settings. A role without the right to change them sees their values. */
import { NativeSelect, Switch } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useMay } from '../../session.ts'
import { Refusal } from '../../shared/forms/action-button.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { notify } from '../../shared/page/notices.tsx'
import { DOMAINS_KEY } from '../domain-queries.ts'
import { OPTIONS_TEXT as TEXT } from '../text.ts'

export const useMayChange = () => useMay({ area: 'domains', access: 'write' })

/** Saves a value at once, with the way back. */
function useSaving<Value>(label: string, value: Value, words: (value: Value) => string, save: Save<Value>) {
  const queries = useQueryClient()
  const changed = () => queries.invalidateQueries({ queryKey: [DOMAINS_KEY] })
  const restore = async (before: Value) => {
    const result = await save(before).catch((error: Error) => error)
    notify(result instanceof Error ? { text: result.message, tone: 'bad' } : { text: TEXT.restored(label) })
    await changed()
  }
  return useSending({
    mutationFn: save,
    async onSuccess(_, wanted) {
      notify({ text: TEXT.saved(label, words(wanted)), undo: () => void restore(value) })
      await changed()
    },
  })
}

type Save<Value> = (value: Value) => Promise<unknown>

export function SwitchRow(props: { label: string; why: string; value: boolean; save: Save<boolean> }) {
  const { label, why, value, save } = props
  const words = (on: boolean) => (on ? TEXT.on : TEXT.off)
  const saving = useSaving(label, value, words, save)
  if (!useMayChange()) return <ShownRow label={label} why={why} value={words(value)} />
  return (
    <div className="option-row">
      <Label label={label} why={why} />
      <Switch
        aria-label={label}
        // What was chosen shows while it is saved.
        checked={saving.isPending ? saving.variables : value}
        onChange={(event) => {
          // Not disabled meanwhile: a disabled switch loses the focus.
          if (!saving.isPending) saving.mutate(event.currentTarget.checked)
        }}
      />
      {saving.error && <Refusal error={saving.error} />}
    </div>
  )
}

export function ChoiceRow<Value extends string>(props: {
  label: string
  why: string
  options: readonly (readonly [Value, string])[]
  value: Value
  save: Save<Value>
}) {
  const { label, why, options, value, save } = props
  const words = (one: Value) => options.find(([each]) => each === one)?.[1] ?? one
  const saving = useSaving(label, value, words, save)
  if (!useMayChange()) return <ShownRow label={label} why={why} value={words(value)} />
  return (
    <div className="option-row">
      <Label label={label} why={why} />
      <NativeSelect
        aria-label={label}
        size="xs"
        value={saving.isPending ? saving.variables : value}
        data={options.map(([each, text]) => ({ value: each, label: text }))}
        onChange={(event) => {
          const chosen = options.find(([each]) => each === event.currentTarget.value)
          if (chosen && !saving.isPending) saving.mutate(chosen[0])
        }}
      />
      {saving.error && <Refusal error={saving.error} />}
    </div>
  )
}

/** A value, and what changes it. */
export function ShownRow(props: { label: string; why?: string; value: ReactNode; children?: ReactNode }) {
  const { label, why, value, children } = props
  return (
    <div className="option-row">
      <Label label={label} why={why} />
      <div className="breakable option-value">{value}</div>
      {children}
    </div>
  )
}

const Label = ({ label, why }: { label: string; why: string | undefined }) => (
  <div>
    <div className="option-label">{label}</div>
    {why !== undefined && <div className="option-why">{why}</div>}
  </div>
)
