/** The flags that a start of the service gives to node. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

const SETTINGS = join(import.meta.dirname, '../../bin/node-settings.sh')

export function serviceFlags(): string[] {
  const flags = execFileSync('/bin/sh', ['-c', '. "$0"; echo "$node_flags"', SETTINGS], { encoding: 'utf8' })
  return flags.trim().split(' ')
}
