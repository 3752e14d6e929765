import { Badge } from '@mantine/core'
import { TEXT } from './text.ts'

const LOOK = { variant: 'light', tt: 'none', fw: 550 } as const

const RESULTS: Readonly<Record<string, string>> = {
  deliverable: 'teal',
  undeliverable: 'red',
  do_not_send: 'red',
  catch_all: 'orange',
}
const STATUSES: Readonly<Record<string, string>> = { uploaded: 'teal', failed: 'red', processing: 'petrol' }

export const ResultBadge = ({ result }: { result: string }) => (
  <Badge {...LOOK} color={RESULTS[result] ?? 'gray'}>
    {TEXT.results[result] ?? result}
  </Badge>
)

export const StatusBadge = ({ status }: { status: string }) => (
  <Badge {...LOOK} color={STATUSES[status] ?? 'gray'}>
    {TEXT.statuses[status] ?? status}
  </Badge>
)
