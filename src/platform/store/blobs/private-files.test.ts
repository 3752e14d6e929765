import assert from 'node:assert/strict'
import { chmod, chown, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually, ownAddress, startTestService } from '../../../../test/support/service.ts'
import { startProcess } from '../../../../test/support/service-process.ts'
import { temporaryFolder } from '../../../../test/support/stores.ts'
import { exposedFiles, exposureSentence, makePrivate } from './private-files.ts'

const modeOf = async (path: string) => (await stat(path)).mode & 0o777

/** Modes of everything below a folder, by path. */
async function modesBelow(folder: string): Promise<Map<string, number>> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  const paths = entries.map((entry) => join(entry.parentPath, entry.name))
  return new Map(await Promise.all(paths.map(async (path) => [path, await modeOf(path)] as const)))
}

test('in a folder that others can enter they can read no file of the service', async (t) => {
  const folder = await temporaryFolder(t)
  await chmod(folder, 0o755)
  const before = process.umask(0o022)
  t.after(() => process.umask(before))
  const service = await startProcess(ownAddress(), { SENDWRIGHT_DATA: folder })
  t.after(() => service.end('SIGKILL'))
  const modes = await modesBelow(folder)
  assert.ok(modes.has(join(folder, 'sendwright.db')) && modes.has(join(folder, 'secret')))
  for (const [path, mode] of modes) assert.equal(mode & 0o077, 0, `${path} is ${mode.toString(8)}`)
  await eventually('advice in the log', async () =>
    new RegExp(`chmod 700 ${folder}\\\\?"`).test(service.output()),
  )
  assert.equal(await modeOf(folder), 0o755, 'the folder is the operator’s')
})

test('files left open by an earlier start are made private at the next one, and logged', async (t) => {
  const folder = await temporaryFolder(t)
  const host = ownAddress()
  const first = await startProcess(host, { SENDWRIGHT_DATA: folder })
  await first.end('SIGTERM')
  const open = ['sendwright.db', 'lock.db', 'secret'].map((name) => join(folder, name))
  for (const file of open) await chmod(file, 0o644)
  await chmod(join(folder, 'blobs'), 0o755)
  const second = await startProcess(host, { SENDWRIGHT_DATA: folder })
  t.after(() => second.end('SIGKILL'))
  for (const file of open) {
    assert.equal(await modeOf(file), 0o600)
    await eventually(`${file} in the log`, async () => second.output().includes(file))
  }
  assert.equal(await modeOf(join(folder, 'blobs')), 0o700)
})

test('a foreign file, a shared folder and a link are left as they are; file and folder are reported', async (t) => {
  const folder = await temporaryFolder(t)
  const [secret, database] = [join(folder, 'secret'), join(folder, 'sendwright.db')]
  await writeFile(secret, 'x')
  await chmod(secret, 0o640)
  await writeFile(database, 'x')
  await chmod(database, 0o666)
  await writeFile(join(folder, 'notes.txt'), 'x')
  await chmod(join(folder, 'notes.txt'), 0o644)
  await mkdir(join(folder, 'blobs'), { mode: 0o700 })
  const target = join(await temporaryFolder(t), 'key')
  await writeFile(target, 'x')
  await chmod(target, 0o644)
  await symlink(target, join(folder, 'tls'))
  await chmod(folder, 0o750)
  // Only root can change the owner of a file.
  const isRoot = process.geteuid?.() === 0
  if (isRoot) await chown(secret, 65_534, 65_534)
  const { mended, left } = await makePrivate(folder)
  assert.deepEqual(
    mended.map(({ path }) => path),
    isRoot ? [database] : [secret, database],
  )
  assert.deepEqual(
    left.map((file) => exposureSentence(file)),
    [
      `${folder} is open to other users of this machine (mode 0750): run "chmod 700 ${folder}".`,
      ...(isRoot
        ? [
            `${secret} is open to other users of this machine (mode 0640): run "chmod 600 ${secret}" as its owner.`,
          ]
        : []),
    ],
  )
  for (const path of [target, join(folder, 'notes.txt')]) assert.equal(await modeOf(path), 0o644)
  assert.deepEqual(await exposedFiles(join(folder, 'not there')), [])
})

test('the system checks name files that are open to other users', async (t) => {
  const service = await startTestService(t)
  const folder = service.config.dataFolder
  await chmod(folder, 0o750)
  await chmod(join(folder, 'sendwright.db'), 0o604)
  const { items } = (await service.call('GET', '/sendwright/v1/system/checks')).body
  const { state, sentence } = items.find(({ name }: { name: string }) => name === 'files')
  assert.equal(state, 'failed')
  assert.match(sentence, /mode 0750.* .*sendwright\.db is open to other users .*mode 0604.*chmod 600/)
})
