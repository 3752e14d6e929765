import { Badge } from '@mantine/core'
import type { Address, Ip } from './ips-api.ts'
import { TEXT } from './text.ts'

const LOOK = { variant: 'light', tt: 'none', fw: 550 } as const

/** What is to be known at a glance; `address` is what the operator sees besides. */
export function Health({ ip, address }: { ip: Ip; address: Address | undefined }) {
  const fault = address?.check.fault || null
  const blocks = address?.blocked_by.filter(({ state }) => state !== 'listed').length ?? 0
  const isListed = address?.blocked_by.some(({ state }) => state === 'listed') === true
  const [label, color] = !ip.enabled
    ? address?.enabled === true && !address.usable
      ? [TEXT.notUsable, 'red']
      : [TEXT.off, 'gray']
    : blocks > 0
      ? [TEXT.blocked(blocks), 'red']
      : isListed
        ? [TEXT.listed, 'red']
        : fault !== null
          ? [TEXT.fault, 'orange']
          : [TEXT.good, 'teal']
  return (
    <div>
      <Badge {...LOOK} color={color}>
        {label}
      </Badge>{' '}
      {ip.is_on_warmup && (
        <Badge {...LOOK} color="blue">
          {TEXT.warming}
        </Badge>
      )}
      {fault !== null && <div className="dimmed queue-small breakable">{fault}</div>}
      {label === TEXT.notUsable && <div className="dimmed queue-small">{TEXT.notUsableWhy}</div>}
    </div>
  )
}
