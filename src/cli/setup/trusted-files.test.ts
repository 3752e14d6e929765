/** Files of another user, as root sees them. The user of the test is that other user, so no rights are needed. */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { checkDataFolder, checkSettings, ownRights } from './trusted-files.ts'

test('root believes settings in closed folders only, and follows no other user', async (t) => {
  const folder = await temporaryFolder(t)
  const { uid } = statSync(folder)
  const file = join(folder, 'sendwright.env')
  const rights = { userId: 0, serviceUserId: uid }
  chmodSync(folder, 0o750)
  checkSettings(file, rights)
  writeFileSync(file, 'A=1\n', { mode: 0o640 })
  checkSettings(file, rights)

  chmodSync(file, 0o660)
  assert.throws(() => checkSettings(file, rights), /others may write to ".*sendwright\.env"/)
  chmodSync(file, 0o640)
  for (const mode of [0o770, 0o757, 0o1777]) {
    chmodSync(folder, mode)
    assert.throws(() => checkSettings(file, rights), /others may write to "(?![^"]*\.env")/)
    checkSettings(file, { ...rights, userId: 1234 })
  }
  mkdirSync(join(folder, 'own'), { mode: 0o700 })
  checkSettings(join(folder, 'own', 'sendwright.env'), rights)
  chmodSync(folder, 0o777)
  assert.throws(() => checkSettings(join(folder, 'own', 'sendwright.env'), rights), /others may write/)
})

test('a data folder that anybody could have made is refused', async (t) => {
  const folder = await temporaryFolder(t)
  chmodSync(folder, 0o1777)
  const data = join(folder, 'data')
  assert.throws(() => checkDataFolder(data, { userId: 0, serviceUserId: null }), /everybody may create/)
  checkDataFolder(data, { userId: 1234, serviceUserId: null })
  chmodSync(folder, 0o755)
  checkDataFolder(data, { userId: 0, serviceUserId: null })
  assert.equal(ownRights(undefined).serviceUserId, null)
  assert.equal(ownRights(folder).serviceUserId, statSync(folder).uid)
})
