/** `node file-check-process.ts FILE PRAGMA`: prints each finding as a line of JSON; exits with 1 if the check was incomplete. */
import { checkFile } from './damage.ts'

const [file = '', pragma] = process.argv.slice(2)
process.stdout.on('error', () => process.exit(1))
const kind = pragma === 'integrity_check' ? pragma : 'quick_check'
const complete = checkFile(file, kind, (finding) => process.stdout.write(`${JSON.stringify(finding)}\n`))
if (!complete) process.exitCode = 1
