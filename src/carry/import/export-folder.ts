/** Writes a source into a folder, one file for each kind with one line of JSON for each entry, as an import takes it. */
import { mkdirSync, readdirSync } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { type Item, KINDS, type Kind, type Source } from './entry.ts'
import { exportFile } from './file-source.ts'
import type { Remark } from './journal.ts'

/** The folder has something in it already. */
export class FolderInUse extends Error {}

interface ExportOptions {
  folder: string
  onPage?(fraction: number): void
  onRemark?(remark: Remark): void
}

/**
 * Files have their names only once they are complete. A file or link that somebody puts there meanwhile is not written to.
 * @throws FolderInUse, ApiUnavailable
 */
export async function exportFolder(
  source: Source,
  { folder, onPage, onRemark }: ExportOptions,
): Promise<Partial<Record<Kind, number>>> {
  mkdirSync(folder, { recursive: true })
  if (readdirSync(folder).length > 0) throw new FolderInUse(`${folder} is not empty`)
  const files = new Map<Kind, FileHandle>()
  const counts: Partial<Record<Kind, number>> = {}
  const partFile = (kind: Kind) => `${exportFile(folder, kind)}.part`
  let done = 0

  async function writePage(items: readonly Item[]): Promise<void> {
    const texts = new Map<Kind, string>()
    for (const item of items) {
      if (item.entry === null) {
        const { kind, name, place, reason } = item
        onRemark?.({ kind, name, place, outcome: 'refused', reason })
        continue
      }
      const { kind, ...values } = item.entry
      counts[kind] = (counts[kind] ?? 0) + 1
      texts.set(kind, `${texts.get(kind) ?? ''}${JSON.stringify(values)}\n`)
    }
    for (const [kind, text] of texts) {
      const file = files.get(kind) ?? (await open(partFile(kind), 'wx'))
      files.set(kind, file)
      await file.appendFile(text)
    }
  }

  try {
    for await (const section of source.sections()) {
      for await (const { items } of section.pages(null)) {
        await writePage(items)
        onPage?.(source.progress(done))
      }
      done++
    }
  } finally {
    for (const file of files.values()) await file.close()
  }
  for (const kind of KINDS) if (files.has(kind)) await rename(partFile(kind), exportFile(folder, kind))
  return counts
}
