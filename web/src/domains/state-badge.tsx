import { Badge } from '@mantine/core'
import type { RecordState } from './records.ts'

const LOOK = { variant: 'light', tt: 'none', fw: 550 } as const

const DOMAIN_STATES: Record<string, { label: string; color: string }> = {
  active: { label: 'Active', color: 'teal' },
  unverified: { label: 'Unverified', color: 'orange' },
  disabled: { label: 'Disabled', color: 'red' },
}

export function DomainStateBadge({ state, size = 'md' }: { state: string; size?: 'md' | 'lg' }) {
  const { label, color } = DOMAIN_STATES[state] ?? { label: state, color: 'gray' }
  return (
    <Badge {...LOOK} size={size} color={color}>
      {label}
    </Badge>
  )
}

const RECORD_STATES: Record<RecordState, { label: string; color: string }> = {
  valid: { label: 'Valid', color: 'teal' },
  missing: { label: 'Not found yet', color: 'orange' },
  wrong: { label: 'Wrong', color: 'red' },
  elsewhere: { label: 'Goes elsewhere', color: 'gray' },
  unchecked: { label: 'Not checked yet', color: 'gray' },
}

/** `isNeeded`: the domain does not work without this record; optional ones are not highlighted. */
export function RecordStateBadge({ state, isNeeded }: { state: RecordState; isNeeded: boolean }) {
  const { label, color } = RECORD_STATES[state]
  return (
    <Badge {...LOOK} color={state === 'missing' && !isNeeded ? 'gray' : color}>
      {label}
    </Badge>
  )
}
