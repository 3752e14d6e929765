import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'

/** Writes `files` (path to content) below a new temporary folder, which is deleted with the test; returns the folder. */
export function plantFiles(context: TestContext, files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'planted-'))
  context.after(() => rmSync(root, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
  return root
}
