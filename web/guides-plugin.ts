/** Makes modules of the guides: `virtual:guides`, their list, and one of each, which is loaded when it is opened. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'vite'
import { GUIDES, renderGuide, slugOf } from './guides.ts'

const DOCS = join(import.meta.dirname, '../docs')
const LIST = 'virtual:guides'
const ONE = 'virtual:guide/'

const markdownOf = (file: string) => readFileSync(join(DOCS, `${file}.md`), 'utf8')
const titleOf = (file: string) => /^# (.+)$/m.exec(markdownOf(file))?.[1] ?? file
const read = (file: string) => renderGuide(markdownOf(file), file, titleOf)

export function guidesPlugin(): Plugin {
  return {
    name: 'guides',
    resolveId: (id) => (id === LIST || id.startsWith(ONE) ? `\0${id}` : null),
    load(id) {
      if (id === `\0${LIST}`) return listModule()
      if (!id.startsWith(`\0${ONE}`)) return null
      const file = id.slice(ONE.length + 1)
      this.addWatchFile(join(DOCS, `${file}.md`))
      return `export const parts = ${JSON.stringify(read(file).parts)}`
    },
  }
}

function listModule(): string {
  const groups = GUIDES.map(({ group, files }) => {
    const guides = files.map((file) => {
      const { title, headings } = read(file)
      const about = JSON.stringify({ slug: slugOf(file), title, headings }).slice(0, -1)
      return `${about},"load":()=>import(${JSON.stringify(ONE + file)})}`
    })
    return `{"name":${JSON.stringify(group)},"guides":[${guides.join(',')}]}`
  })
  return `export const groups = [${groups.join(',')}]`
}
