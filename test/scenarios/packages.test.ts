/** The program as it is released: made from this tree, and started as its unit says. */
// Slow: it builds the packages of a release and starts the program in one.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { buildTree } from '../../scripts/release/tree.ts'
import { killGroup } from '../support/kill-group.ts'
import { eventually, ownAddress, TEST_KEY } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const exec = promisify(execFile)
const ROOT = resolve(import.meta.dirname, '../..')

test('the released program has only JavaScript, sends with the libraries of its lock file, and holds the licences of the others', async (t) => {
  const folder = await temporaryFolder(t)
  const tree = join(folder, 'tree')
  await buildTree(ROOT, tree)
  const { stdout } = await exec('npm', ['pack', '--ignore-scripts', '--json', '--dry-run'], { cwd: tree })
  const files =
    (JSON.parse(stdout) as { files: { path: string }[] }[])[0]?.files.map(({ path }) => path) ?? []
  for (const name of ['dist/main.js', 'dist/licenses.md', 'web/dist/index.html', 'web/dist/licenses.md'])
    assert.ok(files.includes(name), name)
  const unwanted = /\.ts$|\.test\.|^node_modules|^(src|test|bench)\//
  assert.deepEqual(
    files.filter((name) => unwanted.test(name)),
    [],
  )

  linkLibraries(tree)
  const unit = readFileSync(join(ROOT, 'deploy/debian/sendwright.service'), 'utf8')
  const [, command = ''] = /^ExecStart=\/usr\/lib\/sendwright\/(.*)$/m.exec(unit) ?? []
  const [program = '', ...words] = command.split(' ')
  await sendsFrom(t, join(tree, program), words, folder)
})

/** Gives the tree the libraries of its lock file, from the project: `npm run drill -- debian-package` installs them. */
function linkLibraries(tree: string): void {
  const { packages } = JSON.parse(readFileSync(join(tree, 'npm-shrinkwrap.json'), 'utf8')) as {
    packages: Record<string, unknown>
  }
  const folders = Object.keys(packages).filter((folder) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(folder))
  for (const folder of folders.filter((name) => existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(tree, folder)), { recursive: true })
    symlinkSync(join(ROOT, folder), join(tree, folder))
  }
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
