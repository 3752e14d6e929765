/**
 * Makes modules of the guides: `virtual:guides`, their list; one of each, which is loaded when it is opened; and
 * `virtual:guide-texts`, what is searched, which is loaded when somebody types.
 */
import { join } from 'node:path'
import type { Plugin } from 'vite'
import { DOCS, GUIDES, readGuide, searchedWords, slugOf } from './guides.ts'

const LIST = 'virtual:guides'
const TEXTS = 'virtual:guide-texts'
const ONE = 'virtual:guide/'

export function guidesPlugin(): Plugin {
  return {
    name: 'guides',
    resolveId: (id) => (id === LIST || id === TEXTS || id.startsWith(ONE) ? `\0${id}` : null),
    load(id) {
      if (id === `\0${LIST}`) return listModule()
      if (id === `\0${TEXTS}`) return textsModule()
      if (!id.startsWith(`\0${ONE}`)) return null
      const file = id.slice(ONE.length + 1)
      this.addWatchFile(join(DOCS, `${file}.md`))
      return `export const parts = ${JSON.stringify(readGuide(file).parts)}`
    },
  }
}

function listModule(): string {
  const groups = GUIDES.map(({ group, files }) => {
    const guides = files.map((file) => {
      const { title, headings } = readGuide(file)
      const about = JSON.stringify({ slug: slugOf(file), title, headings }).slice(0, -1)
      return `${about},"load":()=>import(${JSON.stringify(ONE + file)})}`
    })
    return `{"name":${JSON.stringify(group)},"guides":[${guides.join(',')}]}`
  })
  return `export const groups = [${groups.join(',')}]`
}

function textsModule(): string {
  const texts = GUIDES.flatMap(({ files }) =>
    files.map((file) => [slugOf(file), searchedWords(readGuide(file))]),
  )
  return `export const texts = ${JSON.stringify(Object.fromEntries(texts))}`
}
