import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../test/support/stores.ts'

const SCRIPT = join(import.meta.dirname, 'corpora.ts')

const corpora = (...args: string[]) =>
  new Promise<{ code: number; output: string }>((resolve) => {
    execFile(process.execPath, [SCRIPT, ...args], { maxBuffer: 2 ** 24 }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr })
    })
  })

test('names and folders that do not exist are answered with the names that do', async () => {
  for (const args of [[], ['bounces'], ['nothing', '/'], ['bounces', '/no/such/folder']]) {
    const { code, output } = await corpora(...args)
    assert.equal(code, 1, args.join(' '))
    assert.match(output, /^Usage: npm run corpora -- NAME FOLDER; NAME is one of: .*bounces/)
  }
})

test('each file that differs from the table, or is missing, is named, and fails the run', async (t) => {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'maildir/bsd'), { recursive: true })
  const mail =
    'From: MAILER-DAEMON@x.example\nSubject: failure notice\n\n<a@b.example>:\n550 5.1.1 No such user\n'
  for (const name of ['new-01.eml', 'rfc3464-01.eml'])
    await writeFile(join(folder, 'maildir/bsd', name), mail)
  const { code, output } = await corpora('bounces', folder)
  assert.equal(code, 1)
  assert.match(
    output,
    /^bsd\/new-01\.eml: is not in the table: failed BOUNCE 5\.1\.1 550 5\.1\.1 No such user$/m,
  )
  assert.match(output, /^bsd\/rfc3464-01\.eml: is another version of the file$/m)
  assert.match(output, /^bsd\/rfc3464-03\.eml: is in the table, but not in the folder$/m)
})
