/** Backups of a stopped service, and detection of damaged ones. With a running service: test/scenarios/backup.test.ts. */
import assert from 'node:assert/strict'
import { appendFile, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { openBlobs } from '../../platform/store/blobs/blobs.ts'
import { makeBackup } from './make-backup.ts'
import { BackupError, type Manifest, type Progress } from './manifest.ts'
import { restoreBackup } from './restore.ts'
import { verifyBackup } from './verify.ts'

const silent = () => {}

/** A data folder with one message and its attachment, which is a blob. */
async function rig(t: TestContext) {
  const folder = await temporaryFolder(t)
  const at = (name: string) => join(folder, name)
  const service = await startTestService(t, { SENDWRIGHT_DATA: at('data') })
  const attachment = new File([Buffer.alloc(700_000, 'attached ')], 'large.bin')
  assert.equal((await service.send({ attachment })).status, 200)
  await eventually('it is delivered', async () => (await service.events('?event=delivered')).length === 1)
  await service.service.stop()
  const secret = (await readFile(at('data/secret'), 'utf8')).trim()
  const make = (target: string, withSecret = true) =>
    makeBackup(
      { dataFolder: at('data'), target: at(target), secret: withSecret ? secret : null, version: '1' },
      silent,
    )
  return { at, make }
}

const refused = (running: Promise<unknown>, message: RegExp) =>
  assert.rejects(running, (error: Error) => error instanceof BackupError && message.test(error.message))

test('any change to a backup is found, and the backup is not restored', async (t) => {
  const { at, make } = await rig(t)
  const { files, counts } = await make('backup')
  assert.deepEqual(
    { ...counts, events: 0 },
    { messages: 1, waiting: 0, events: 0, domains: 1, blobs: counts.blobs },
  )
  const blob = files.find(({ path }) => path.startsWith('blobs/'))?.path as string
  const flip = async (file: string) => {
    const bytes = await readFile(file)
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1
    // A blob of the backup is a hard link to the service's one, which must not change.
    await rm(file)
    await writeFile(file, bytes)
  }
  const rewrite = (change: (manifest: Manifest) => void) => async (file: string) => {
    const manifest = JSON.parse(await readFile(file, 'utf8')) as Manifest
    change(manifest)
    await writeFile(file, JSON.stringify(manifest))
  }
  const cases: [name: string, path: string, change: (file: string) => Promise<void>, message: RegExp][] = [
    ['a changed blob', blob, flip, /blobs\/\S+ was changed/],
    ['a missing blob', blob, (file) => rm(file), /blobs\/\S+ is missing/],
    [
      'a longer database',
      'sendwright.db',
      (file) => appendFile(file, 'x'),
      /sendwright\.db has \d+ bytes instead of/,
    ],
    ['a changed database', 'sendwright.db', flip, /sendwright\.db was changed/],
    ['no manifest', 'manifest.json', (file) => rm(file), /holds no whole backup/],
    [
      'half a manifest',
      'manifest.json',
      (file) => writeFile(file, '{"format": 1'),
      /Cannot read manifest\.json/,
    ],
    [
      'a path that leads out',
      'manifest.json',
      rewrite(({ files }) => files.push({ path: 'blobs/../../../x', sizeBytes: 0, sha256: '' })),
      /Cannot read manifest\.json/,
    ],
    [
      'a blob that was left out',
      'manifest.json',
      rewrite((manifest) => {
        manifest.files = manifest.files.filter(({ path }) => path !== blob)
      }),
      /is named by a row and not in the backup/,
    ],
  ]
  for (const [name, path, change, message] of cases) {
    const file = at(`backup/${path}`)
    const whole = await readFile(file)
    await change(file)
    const found = await verifyBackup(at('backup'), silent).then(
      ({ faults }) => faults.join(' '),
      (error: Error) => error.message,
    )
    assert.match(found, message, name)
    await refused(restoreBackup(at('backup'), at('restored'), silent), message)
    await assert.rejects(stat(at('restored')), `${name}: nothing was written`)
    await rm(file, { force: true })
    await writeFile(file, whole)
  }
  assert.deepEqual((await verifyBackup(at('backup'), silent)).faults, [])
})

test('a secret that does not belong to the database is found', async (t) => {
  const { at, make } = await rig(t)
  await makeBackup(
    { dataFolder: at('data'), target: at('wrong'), secret: 'x'.repeat(43), version: '1' },
    silent,
  )
  const { faults } = await verifyBackup(at('wrong'), silent)
  assert.deepEqual(faults, ['The secret in it does not open what the database has sealed.'])
  await make('without', false)
  const verdict = await verifyBackup(at('without'), silent)
  assert.deepEqual(verdict.faults, [])
  assert.match(verdict.warnings.join(), /secret is not in it/)
})

test('the target is absent or empty and outside, and is left as it was when a backup fails', async (t) => {
  const { at, make } = await rig(t)
  await mkdir(at('full'))
  await writeFile(at('full/file'), '')
  await refused(make('full'), /is not empty/)
  await refused(make('data/inside'), /within the data folder/)
  await assert.rejects(stat(at('data/inside')))
  await symlink(at('data'), at('link'))
  await refused(make('link/inside'), /within the data folder/)
  await refused(make('full/file/below'), /Cannot (make|write to)/)
  await mkdir(at('empty'))
  await writeFile(at('data/sendwright.db'), 'not a database'.repeat(1000))
  await refused(make('empty'), /Cannot copy the database .*not a database/)
  assert.deepEqual(await readdir(at('empty')), [])
})

test('blobs that were lost earlier are reported, and do not prevent a backup', async (t) => {
  const { at, make } = await rig(t)
  await rm(at('data/blobs'), { recursive: true })
  const { missingBlobs, counts } = await make('backup')
  assert.ok(missingBlobs.length > 0)
  assert.equal(counts.blobs, 0)
  const { faults, warnings } = await verifyBackup(at('backup'), silent)
  assert.deepEqual(faults, [])
  assert.match(warnings.join(), /lost before this backup/)
})

test('the progress of each step reaches its total', async (t) => {
  const { at } = await rig(t)
  const seen = new Map<string, Progress>()
  const onProgress = (progress: Progress) => void seen.set(progress.step, progress)
  await makeBackup({ dataFolder: at('data'), target: at('backup'), secret: null, version: '1' }, onProgress)
  await restoreBackup(at('backup'), at('restored'), onProgress)
  assert.deepEqual([...seen.keys()], ['database', 'blobs', 'checksums', 'integrity', 'files'])
  for (const { step, doneBytes, totalBytes } of seen.values()) assert.equal(doneBytes, totalBytes, step)
})

test('while blobs are held none is removed; afterwards all are', async (t) => {
  const blobs = await openBlobs(await temporaryFolder(t))
  const bytes = async function* () {
    yield Buffer.from('bytes')
  }
  const name = await blobs.keep((await blobs.spool(bytes())).chunk)
  const [release, releaseOther] = [blobs.hold(), blobs.hold()]
  await blobs.remove(name)
  await release()
  await release()
  assert.equal((await blobs.read(name)).sizeBytes, 5)
  await releaseOther()
  await assert.rejects(blobs.read(name))
})
