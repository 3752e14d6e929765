/** The workflows of docs/ci.md: their commands start the service, send, and find the message. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { fencedBlocks } from '../support/documents.ts'
import { killGroup } from '../support/kill-group.ts'
import { lacking } from '../support/lacking.ts'
import { ownAddress } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** The commands of several lines in a YAML text, each after a key or a dash and a bar. */
function scriptsIn(yaml: string): string[] {
  const scripts: string[] = []
  const lines = yaml.split('\n')
  for (const [at, line] of lines.entries()) {
    const [, indent] = /^( *)(?:- |run: )\|$/.exec(line) ?? []
    if (indent === undefined) continue
    const end = lines.findIndex((next, index) => index > at && !next.startsWith(`${indent} `))
    scripts.push(lines.slice(at + 1, end < 0 ? undefined : end).join('\n'))
  }
  return scripts
}

const workflows = fencedBlocks().filter(
  ({ place, language }) => place.startsWith('docs/ci.md:') && language === 'yaml',
)

test('there is a workflow for GitHub Actions and one for GitLab', () => {
  assert.deepEqual(
    workflows.map(({ text }) => scriptsIn(text).length),
    [3, 3],
  )
})

for (const { place, text } of workflows) {
  test(`the commands of ${place} send a message and find it in the inbox`, {
    skip: lacking('curl'),
  }, async (t) => {
    const folder = await temporaryFolder(t)
    const host = ownAddress()
    await mkdir(join(folder, 'bin'))
    // The installed package is this tree.
    await writeFile(join(folder, 'bin/npx'), `#!/bin/sh\nPATH="${ROOT}/bin:$PATH" exec "$@"\n`)
    await chmod(join(folder, 'bin/npx'), 0o755)
    const child = spawn('bash', ['-e', '-c', scriptsIn(text).join('\n')], {
      cwd: folder,
      detached: true, // a separate group, so that the service does not outlive the test
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: `${folder}/bin:${process.env['PATH']}`,
        TMPDIR: folder,
        MAIL_URL: `http://${host}:8080`,
        MAIL_KEY: 'only-for-tests-0123456789',
        SENDWRIGHT_HOST: host,
        SENDWRIGHT_HOSTNAME: 'mail.test.example',
      },
    })
    t.after(() => killGroup(child))
    let output = ''
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString()
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 0, output)
    assert.match(output, /Queued.*Order 17/s)
  })
}
