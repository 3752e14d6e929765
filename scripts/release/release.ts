/**
 * Makes the packages of a release, from the sources and the lock file:
 *
 *     npm run release                          all, into release/
 *     npm run release -- --only npm            one kind: npm, deb or tree
 *     npm run release -- --processor arm64     for another processor than this machine's
 *     npm run release -- --quick               compressed quickly instead of well
 *
 * `tree` is the program with its libraries as a folder; the container image is a copy of it.
 *
 * With the npm package comes its bill of materials (bill.ts).
 *
 * All kinds together are a release, which also keeps a data folder for the tests of later upgrades (fixture.ts).
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { writeBill } from './bill.ts'
import { buildDebian } from './debian.ts'
import { buildTree, installLibraries, type Processor, run } from './tree.ts'

const KINDS = ['npm', 'deb', 'tree'] as const
type Kind = (typeof KINDS)[number]

export interface ReleaseOptions {
  root: string
  /** Where the packages go. */
  folder: string
  kinds: readonly Kind[]
  processor: Processor
  quick: boolean
  /** Version of the Debian package; default: the manifest's. */
  version?: string
}

/** Makes the packages and returns their paths. @throws Error when a step fails */
export async function makeRelease({
  root,
  folder,
  kinds,
  processor,
  quick,
  version,
}: ReleaseOptions): Promise<string[]> {
  mkdirSync(folder, { recursive: true })
  // In the same file system, so that the tree can be moved.
  const work = mkdtempSync(join(folder, '.work-'))
  try {
    const made: string[] = []
    const tree = join(work, 'tree')
    await buildTree(root, tree)
    if (kinds.includes('npm')) {
      const { name, version: packed } = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as {
        name: string
        version: string
      }
      run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], tree)
      made.push(join(folder, `${name}-${packed}.tgz`), writeBill(root, folder, work))
    }
    if (!kinds.includes('deb') && !kinds.includes('tree')) return made
    installLibraries(tree, processor)
    if (kinds.includes('tree')) {
      const target = join(folder, 'tree')
      rmSync(target, { recursive: true, force: true })
      if (kinds.includes('deb')) run('cp', ['-a', tree, target], work)
      else renameSync(tree, target)
      made.push(target)
    }
    if (kinds.includes('deb'))
      made.push(
        await buildDebian(folder, { root, tree, work, processor, quick, ...(version && { version }) }),
      )
    return made
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: 'release' },
      only: { type: 'string' },
      processor: { type: 'string', default: process.arch },
      quick: { type: 'boolean', default: false },
    },
  })
  const kind = KINDS.find((name) => name === values.only)
  if (values.only !== undefined && !kind) throw new Error(`--only is one of ${KINDS.join(', ')}`)
  const { processor } = values
  if (processor !== 'x64' && processor !== 'arm64') throw new Error('--processor is x64 or arm64')
  const made = await makeRelease({
    root: resolve(import.meta.dirname, '../..'),
    folder: resolve(values.out),
    kinds: kind ? [kind] : ['npm', 'deb'],
    processor,
    quick: values.quick,
  })
  for (const path of made) console.log(path)
  if (!kind) keepFixture(resolve(import.meta.dirname, '../..'))
}

/** To be committed with the release. One that is there was made by this version, and stays as it is. */
function keepFixture(root: string): void {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const folder = join(root, 'test/fixtures/releases')
  const schema = Math.max(
    ...readdirSync(join(root, 'src/platform/store/migrations')).map((name) => Number.parseInt(name, 10)),
  )
  const file = join(folder, `${version}-schema-${schema}.br`)
  if (!existsSync(file)) run(process.execPath, ['scripts/release/fixture.ts'], root)
  console.log(file)
}

if (import.meta.main) await main()
