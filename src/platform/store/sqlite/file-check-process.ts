/** `node file-check-process.ts FILE PRAGMA`: prints each finding as a line of JSON; exits with 1 if the check was incomplete. */
import { DatabaseSync } from 'node:sqlite'
import { checkTables, type Finding, isDamage } from './damage.ts'

const BUSY_MS = 5_000

const [file = '', pragma] = process.argv.slice(2)
process.stdout.on('error', () => process.exit(1))
const report = (finding: Finding) => process.stdout.write(`${JSON.stringify(finding)}\n`)

try {
  const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS })
  const kind = pragma === 'integrity_check' ? pragma : 'quick_check'
  for (const finding of checkTables(database, kind)) report(finding)
  database.close()
} catch (error) {
  if (isDamage(error)) report({ object: null, text: (error as Error).message })
  else process.exitCode = 1
}
