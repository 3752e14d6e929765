/** The official clients that run outside of Node, the Terraform provider, and the program that makes each one's calls. */
import { join } from 'node:path'

/** Runs with the arguments base URL, key, sending domain, and domain to create. Prints a line of JSON for each call:
 *  `{"call": NAME}` before it is made, and at the end `{"versions": {...}}`. Ends with 0 if all are as expected. */
export interface Library {
  command: readonly string[]
  /** It makes few calls, and sends no mail. */
  isSmall?: true
}

const program = (name: string) => join(import.meta.dirname, name)

export const LIBRARIES: Readonly<Record<string, Library>> = {
  python: { command: ['/usr/bin/python3', program('calls.py')] },
  php: { command: ['php', program('calls.php')] },
  ruby: { command: ['ruby', program('calls.rb')] },
  // Built from calls.go, with the client's module.
  go: { command: [process.env['INTEROP_GO_PROGRAM'] ?? 'interop-calls-go'] },
  terraform: { command: [process.execPath, program('../terraform/calls.ts')], isSmall: true },
}
