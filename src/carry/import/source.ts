import type { Item } from './entry.ts'

/** Some items of a section, and the place after them. */
export interface Page {
  items: readonly Item[]
  /** Given to `pages` later, it continues after this page; short, as it is written to the journal. */
  cursor: string
}

/** A part of a source that is read from its beginning to its end: one list of one domain, or one file. */
export interface Section {
  /** The same in each run. */
  id: string
  /** @param cursor of the last page that was taken; null: from the beginning */
  pages(cursor: string | null): AsyncIterable<Page>
}

/** Where entries come from: an HTTP API, files of another service, or the folder of an export. */
export interface Source {
  /** What is read, without a key: a journal is only continued for the same one. */
  id: string
  sections(): AsyncIterable<Section>
  /** How much of it has been read, 0 to 1, as far as that is known. `done`: sections that are. */
  progress(done: number): number
}
