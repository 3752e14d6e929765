/** `node file-check-process.ts FILE PRAGMA`: prints each finding as a line of JSON; ends with 0 once all was looked at. */
import { DatabaseSync } from 'node:sqlite'
import { checkTables, type Finding } from './damage.ts'

const [file = '', pragma] = process.argv.slice(2)
const tell = (finding: Finding) => process.stdout.write(`${JSON.stringify(finding)}\n`)

try {
  const database = new DatabaseSync(file, { readOnly: true })
  const kind = pragma === 'integrity_check' ? pragma : 'quick_check'
  for (const finding of checkTables(database, kind)) tell(finding)
  database.close()
} catch (error) {
  tell({ of: null, text: (error as Error).message })
}
