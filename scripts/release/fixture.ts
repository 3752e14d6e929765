/**
 * Keeps a small data folder as this version makes it, for the tests of upgrades:
 *
 *     node scripts/release/fixture.ts
 *
 * It goes to test/fixtures/releases under the version and the number of the schema, and is committed with the release.
 * `npm run release` does this as well, unless the file is there.
 */
import type { TestContext } from 'node:test'
import { makeFixture } from '../../test/support/release-fixture.ts'

const closers: (() => unknown)[] = []
const context = { after: (run: () => unknown) => closers.push(run) } as unknown as TestContext
try {
  console.log(await makeFixture(context))
} finally {
  for (const close of closers.reverse()) await close()
}
