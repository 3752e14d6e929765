/** The guides of `docs/`, which assistants read as resources. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Refused } from './tool.ts'

/** A release has them beside the program. */
const FOLDER = join(import.meta.dirname, '../../../docs')
const SCHEME = 'sendwright://guides/'

export interface Guide {
  /** `install`, `api/messages`. */
  name: string
  uri: string
}

/** Guides for operators, and the pages of the API. */
export async function listGuides(): Promise<Guide[]> {
  const names = await Promise.all([namesIn(''), namesIn('api/')])
  return names.flat().map((name) => ({ name, uri: SCHEME + name }))
}

async function namesIn(folder: string): Promise<string[]> {
  const files = await readdir(join(FOLDER, folder))
  return files
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => folder + file.slice(0, -3))
}

/** @param name as `listGuides` has it, or its URI @throws Refused for any other */
export async function readGuide(name: string): Promise<string> {
  const guide = (await listGuides()).find((one) => one.name === name || one.uri === name)
  if (!guide) throw new Refused('There is no such guide', 404)
  return readFile(join(FOLDER, `${guide.name}.md`), 'utf8')
}
