/** The files of another service, or the folder of an export, as a source. A section is one file. */
import { join } from 'node:path'
import { entryOf } from './api-entries.ts'
import {
  type Item,
  itemOf,
  KINDS,
  type Kind,
  PAGE_ITEMS_MAX,
  type Page,
  refusedItem,
  type Section,
  type Source,
  Unreadable,
} from './entry.ts'
import {
  csvHeader,
  type InputFile,
  InputFileError,
  type InputRecord,
  inputFile,
  readRecords,
} from './input-file.ts'
import type { Shape, ShapeContext } from './shapes/shape.ts'

/** Bytes read and to be read of all files. */
interface Bytes {
  read: number
  all: number
}

/** `bounces=FILE`, or `FILE` alone. */
export interface GivenFile {
  content: string
  path: string
}

/** @throws InputFileError, Unreadable: before anything is made */
export async function createFileSource(
  shape: Shape,
  service: string,
  given: readonly GivenFile[],
  context: Omit<ShapeContext, 'content'>,
): Promise<Source> {
  const files: { file: InputFile; context: ShapeContext }[] = []
  for (const { content, path } of given) {
    const file = await inputFile(path)
    const own = { ...context, content }
    if (!file.isJson) shape.checkColumns?.((await csvHeader(path)).columns, own)
    files.push({ file, context: own })
  }
  const bytes: Bytes = { read: 0, all: files.reduce((sum, { file }) => sum + file.bytes, 0) }
  const described = files.map(({ file, context: { content } }) => [
    content,
    file.path,
    file.bytes,
    file.modifiedMs,
  ])
  return {
    id: JSON.stringify([service, context, described]),
    async *sections() {
      for (const { file, context: own } of files)
        yield fileSection(file.path, mainKind(own.content), file, shape.lists, bytes, (record) =>
          shape.items(record, own),
        )
    },
    progress: () => (bytes.all === 0 ? 1 : Math.min(1, bytes.read / bytes.all)),
  }
}

/** What a file that cannot be read is counted as. */
const mainKind = (content: string): Kind =>
  content === 'templates' ? 'template' : content === 'contacts' ? 'member' : 'bounce'

/** The file of each kind in an export. The name is fixed: names of entries never become part of a path. */
export const exportFile = (folder: string, kind: Kind) => join(folder, `${kind}.jsonl`)

/** @throws InputFileError if the folder has no file of an export */
export async function createFolderSource(folder: string, kinds: ReadonlySet<Kind>): Promise<Source> {
  const files: { kind: Kind; file: InputFile }[] = []
  for (const kind of KINDS) {
    if (!kinds.has(kind)) continue
    const file = await inputFile(exportFile(folder, kind)).catch(() => null)
    if (file && file.bytes > 0) files.push({ kind, file })
  }
  if (files.length === 0)
    throw new InputFileError(`${folder} has no files of an export, such as domain.jsonl`)
  const bytes: Bytes = { read: 0, all: files.reduce((sum, { file }) => sum + file.bytes, 0) }
  return {
    id: JSON.stringify(['folder', files.map(({ file }) => [file.path, file.bytes, file.modifiedMs])]),
    async *sections() {
      for (const { kind, file } of files) {
        yield fileSection(file.path, kind, file, [], bytes, ({ place, value, fault }) => [
          itemOf(kind, place, '', () => {
            if (fault !== null) throw new Unreadable(fault)
            return entryOf(kind, value)
          }),
        ])
      }
    },
    progress: () => Math.min(1, bytes.read / bytes.all),
  }
}

/** A cursor is the number of records taken: the file is read again up to there, which takes no call. */
function fileSection(
  id: string,
  kind: Kind,
  file: InputFile,
  lists: readonly string[],
  bytes: Bytes,
  itemsOf: (record: InputRecord) => Item[],
): Section {
  return {
    id,
    async *pages(cursor): AsyncGenerator<Page> {
      const skipped = Number(cursor ?? 0)
      let count = 0
      let items: Item[] = []
      const at = (place: string) => `${file.path} ${place}`.trimEnd()
      const refusedFile = (reason: string) => refusedItem(kind, at(''), file.path, reason)
      try {
        const onRead = (length: number) => {
          bytes.read += length
        }
        for await (const record of readRecords(file, lists, onRead)) {
          count++
          if (count <= skipped) continue
          items.push(...itemsOf({ ...record, place: at(record.place) }))
          if (items.length < PAGE_ITEMS_MAX) continue
          yield { items, cursor: String(count) }
          items = []
        }
        if (count === 0) items.push(refusedFile('has no records'))
      } catch (error) {
        if (!(error instanceof InputFileError)) throw error
        items.push(refusedFile(`was not read to its end: ${error.message}`))
      }
      if (items.length > 0) yield { items, cursor: String(count) }
    },
  }
}
