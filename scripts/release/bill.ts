/** The bill of materials of a release: every library that the packages contain, also those bundled into the program. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Lock, releaseLock, releaseManifest } from './manifest.ts'
import { run } from './tree.ts'

/**
 * Writes `sendwright-<version>.cdx.json` (CycloneDX) to `folder`, from the lock file, and returns its path.
 * @param work an empty folder to work in
 */
export function writeBill(root: string, folder: string, work: string): string {
  const read = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'))
  const manifest = read('package.json')
  const libraries = Object.keys(manifest.dependencies)
  // npm takes the name of the folder for that of the product.
  const place = join(work, manifest.name)
  mkdirSync(place)
  const write = (name: string, value: unknown) => writeFileSync(join(place, name), JSON.stringify(value))
  // `npm sbom --omit=dev` on the whole lock file leaves out libraries that tools for development need too.
  write('package.json', releaseManifest(manifest, libraries))
  write('package-lock.json', releaseLock(read('package-lock.json') as Lock, libraries))
  const path = join(folder, `${manifest.name}-${manifest.version}.cdx.json`)
  const options = ['--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only']
  writeFileSync(path, run('npm', ['sbom', ...options], place))
  return path
}
