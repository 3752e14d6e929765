/** The program as it is released: made from this tree, and started as its unit says. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { buildTree } from '../../scripts/release/tree.ts'
import { killGroup } from '../support/kill-group.ts'
import { eventually, ownAddress, TEST_KEY } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const exec = promisify(execFile)
const ROOT = resolve(import.meta.dirname, '../..')

test('the released program has only JavaScript, names its libraries, and sends', async (t) => {
  const folder = await temporaryFolder(t)
  const tree = join(folder, 'tree')
  buildTree(ROOT, tree)
  const { stdout } = await exec('npm', ['pack', '--ignore-scripts', '--json', '--dry-run'], { cwd: tree })
  const files =
    (JSON.parse(stdout) as { files: { path: string }[] }[])[0]?.files.map(({ path }) => path) ?? []
  assert.ok(files.includes('dist/main.js') && files.includes('web/dist/index.html'))
  const unwanted = /\.ts$|\.test\.|^node_modules|^(src|test|bench)\//
  assert.deepEqual(
    files.filter((name) => unwanted.test(name)),
    [],
  )
  assert.deepEqual(unnamedLibraries(tree, files), [])

  // Those of the project: `npm run drill -- debian-package` installs the package's own.
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  const unit = readFileSync(join(ROOT, 'deploy/debian/sendwright.service'), 'utf8')
  const [, command = ''] = /^ExecStart=\/usr\/lib\/sendwright\/(.*)$/m.exec(unit) ?? []
  const [program = '', ...words] = command.split(' ')
  await sendsFrom(t, join(tree, program), words, folder)
})

/** Libraries that a file imports and the manifest does not name. */
function unnamedLibraries(tree: string, files: readonly string[]): string[] {
  const manifest = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const named = Object.keys(manifest.dependencies)
  const found = new Set<string>()
  for (const file of files.filter((name) => name.startsWith('dist/') && name.endsWith('.js'))) {
    const source = readFileSync(join(tree, file), 'utf8')
    for (const [, imported, loaded] of source.matchAll(
      /^(?:import|export|\}) .*from '([^'.\n][^'\n]*)'$|import\('([^'.\n][^'\n]*)'\)/gm,
    )) {
      const name = imported ?? loaded ?? ''
      if (!name.startsWith('node:')) found.add(name)
    }
  }
  assert.ok(found.size > 5)
  return [...found].filter((name) => !named.some((known) => name === known || name.startsWith(`${known}/`)))
}

async function sendsFrom(t: TestContext, program: string, words: string[], folder: string): Promise<void> {
  const host = ownAddress()
  const env = {
    PATH: process.env['PATH'],
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_DATA: join(folder, 'data'),
    SENDWRIGHT_API_KEY: TEST_KEY,
    SENDWRIGHT_HOSTNAME: 'mail.test.example',
  }
  const child = spawn(program, words, { detached: true, stdio: 'ignore', env })
  t.after(() => killGroup(child))
  const url = `http://${host}:8080`
  const authorization = `Basic ${btoa(`api:${TEST_KEY}`)}`
  await eventually('the service', () => fetch(`${url}/health/ready`).then(isOk, () => false))
  assert.match((await exec(program, ['health'], { env })).stdout, /ready/)
  const { stdout } = await exec(program, ['--version'], { env })
  assert.match(stdout, /^sendwright \d+\.\d+\.\d+\n$/)
  assert.equal((await fetch(`${url}/inbox`)).status, 200, 'the dashboard')

  const domains = await fetch(`${url}/v4/domains`, { headers: { authorization } })
  const [sandbox] = ((await domains.json()) as { items: { name: string }[] }).items
  const from = `shop@${sandbox?.name}`
  const form = new FormData()
  for (const [name, value] of Object.entries({ from, to: 'ann@example.org', subject: 'Hello', text: 'Hi' }))
    form.set(name, value)
  form.set('html', '<p>Hello {{name}}</p>')
  form.set('v:name', 'Ann')
  const sent = await fetch(`${url}/v3/${sandbox?.name}/messages`, {
    ...{ method: 'POST', headers: { authorization }, body: form },
  })
  assert.equal(sent.status, 200, await sent.text())
  await eventually('the captured message', async () => {
    const answer = await fetch(`${url}/sendwright/v1/inbox`, { headers: { authorization } })
    return ((await answer.json()) as { items: unknown[] }).items.length === 1
  })
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
}

const isOk = ({ ok }: Response) => ok
