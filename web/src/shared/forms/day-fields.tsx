/** First and last day of a span, in a row of filters. */
import { TextInput } from '@mantine/core'
import { TEXT } from '../text.ts'

/** `from`, `to`: `2026-01-31`, or empty. A field that is emptied calls `onChange` with undefined. */
export function DayFields(props: {
  from: string
  to: string
  onChange: (changed: { from?: string | undefined } | { to?: string | undefined }) => void
}) {
  const { from, to, onChange } = props
  return (
    <>
      <TextInput
        size="sm"
        type="date"
        aria-label={TEXT.fromDay}
        value={from}
        max={to}
        onChange={(event) => onChange({ from: event.currentTarget.value || undefined })}
      />
      <TextInput
        size="sm"
        type="date"
        aria-label={TEXT.toDay}
        value={to}
        min={from}
        onChange={(event) => onChange({ to: event.currentTarget.value || undefined })}
      />
    </>
  )
}
