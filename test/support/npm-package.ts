/**
 * Files of a published npm package that nothing here depends on: the package is fetched (from npm's cache if possible)
 * and only the named files are unpacked, so that a product's own client code can run without the thousand packages
 * that the product itself needs.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** Enough for 24 MB over a slow line. */
const FETCH_MAX_MS = 90_000
/** npm lists the files; large packages have ten thousand, each with 120 bytes. */
const LISTED_MAX_BYTES = 16_000_000

export interface PackageFiles {
  /** `name@version`. */
  spec: string
  /** As in a lock file: `sha512-<base64>`. Null: not compared, for a newest version that nobody has looked at. */
  integrity: string | null
  /** Paths inside the package. */
  files: readonly string[]
}

/**
 * Unpacks the files below `folder`, at their paths in the package.
 * @throws Error when the package cannot be fetched, or does not match `integrity`
 */
export async function unpackFiles({ spec, integrity, files }: PackageFiles, folder: string): Promise<void> {
  const args = ['pack', spec, '--json', '--silent', '--ignore-scripts', '--prefer-offline']
  const { stdout } = await run('npm', [...args, '--pack-destination', folder], {
    cwd: folder,
    timeout: FETCH_MAX_MS,
    maxBuffer: LISTED_MAX_BYTES,
  })
  const answer = JSON.parse(stdout) as { filename: string }[] | Record<string, { filename: string }>
  const [packed] = Object.values(answer)
  const archive = join(folder, packed?.filename ?? '')
  const digest = createHash('sha512')
    .update(await readFile(archive))
    .digest('base64')
  if (integrity !== null && `sha512-${digest}` !== integrity)
    throw new Error(`${spec} has the wrong digest: sha512-${digest}`)
  const names = files.map((file) => `package/${file}`)
  await run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1', ...names])
}

/**
 * Puts packages next to those files, so that their `require` finds them.
 * @param linked name as required, and the name of an installed package to use for it
 * @param written name as required, and the source of a stub for what the code only reports to (logs, metrics)
 */
export async function addPackages(
  folder: string,
  linked: Readonly<Record<string, string>>,
  written: Readonly<Record<string, string>>,
): Promise<void> {
  const require = createRequire(import.meta.url)
  for (const [name, installed] of Object.entries(linked)) {
    const target = join(folder, 'node_modules', name)
    await mkdir(dirname(target), { recursive: true })
    await symlink(dirname(require.resolve(`${installed}/package.json`)), target)
  }
  for (const [name, source] of Object.entries(written)) {
    const target = join(folder, 'node_modules', name)
    await mkdir(target, { recursive: true })
    await writeFile(join(target, 'index.js'), source)
  }
}
