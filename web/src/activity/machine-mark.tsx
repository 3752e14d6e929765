import { Badge } from '@mantine/core'
import { MACHINE_WHY, MACHINES } from './text.ts'

/** Marks an open or a click of a machine; `bot` of the event is empty or missing for people. */
export function MachineMark({ bot = '' }: { bot?: string | undefined }) {
  if (bot === '') return null
  return (
    <Badge variant="light" tt="none" fw={550} size="sm" color="gray" title={MACHINE_WHY[bot]}>
      {MACHINES[bot] ?? bot}
    </Badge>
  )
}
