import { Badge } from '@mantine/core'
import type { RecordState } from './records/records.ts'
import { RECORD_STATE_NAMES, STATE_NAMES } from './text.ts'

const LOOK = { variant: 'light', tt: 'none', fw: 550 } as const

const DOMAIN_COLORS: Record<string, string> = { active: 'teal', unverified: 'orange', disabled: 'red' }

export function DomainStateBadge({ state, size = 'md' }: { state: string; size?: 'md' | 'lg' }) {
  return (
    <Badge {...LOOK} size={size} color={DOMAIN_COLORS[state] ?? 'gray'}>
      {STATE_NAMES[state] ?? state}
    </Badge>
  )
}

const RECORD_COLORS: Record<RecordState, string> = {
  valid: 'teal',
  missing: 'orange',
  wrong: 'red',
  elsewhere: 'gray',
  unchecked: 'gray',
}

/** `isNeeded`: the domain does not work without this record; optional ones are not highlighted. */
export function RecordStateBadge({ state, isNeeded }: { state: RecordState; isNeeded: boolean }) {
  return (
    <Badge {...LOOK} color={state === 'missing' && !isNeeded ? 'gray' : RECORD_COLORS[state]}>
      {RECORD_STATE_NAMES[state]}
    </Badge>
  )
}
