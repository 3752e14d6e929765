import { compileProgram, TemplateFault } from '../../../sending/templates/rendering/program.ts'
import { type ApiAnswer, errorText, pathPart } from '../api-client.ts'
import type { TemplateEntry, TemplateVersion } from '../entry.ts'
import {
  changed,
  existing,
  linkedItems,
  made,
  oneByOne,
  type Result,
  refused,
  type Writer,
  type WriterParts,
} from './result.ts'

const TEMPLATES_PER_PAGE = 100

export function createTemplateWriter({ client, isDryRun, hasDomain }: WriterParts): Writer<TemplateEntry> {
  /** Names at the service in lower case, of the domain or account that was last asked for. */
  let scope: { path: string; names: Set<string> } | null = null
  /** Names of this run by their lower case: names that differ in case only are one here. */
  const given = new Map<string, string>()

  async function namesAt(path: string): Promise<Set<string>> {
    if (scope?.path === path) return scope.names
    const names = new Set<string>()
    for await (const { name } of itemsAt(path)) names.add(String(name))
    scope = { path, names }
    return names
  }

  /** In a dry run the domain may not exist yet. */
  async function* itemsAt(path: string) {
    if (isDryRun && (await client.call('GET', `${path}?limit=1`)).status === 404) return
    yield* linkedItems(client, path, TEMPLATES_PER_PAGE)
  }

  async function write(entry: TemplateEntry): Promise<Result> {
    const { domain, name } = entry
    if (domain !== null && !(await hasDomain(domain))) return refused(`the service has no domain ${domain}`)
    const path = domain === null ? '/v4/templates' : `/v3/${pathPart(domain)}/templates`
    const key = name.toLowerCase()
    const before = given.get(`${path} ${key}`)
    if (before !== undefined && before !== name)
      return refused(`names here have no case: there is "${before}"`)
    given.set(`${path} ${key}`, name)
    const faults: string[] = []
    const versions = entry.versions.filter((version) => {
      const fault = faultOf(version)
      if (fault !== null) faults.push(`version ${version.tag}: ${fault}`)
      return fault === null
    })
    if (entry.versions.length > 0 && versions.length === 0) return refused(faults.join('; '))
    const names = await namesAt(path)
    const isNew = !names.has(key)
    if (isDryRun) {
      names.add(key)
      return faults.length > 0 ? changed(faults.join('; ')) : isNew ? made : existing
    }
    const added = isNew
      ? await makeTemplate(path, entry, versions, faults)
      : await addVersions(path, key, versions, faults)
    if (added === null) return refused(faults.join('; '))
    names.add(key)
    if (faults.length > 0) return changed(faults.join('; '))
    return added > 0 || isNew ? made : existing
  }

  /** The number of versions, or null if the template could not be made. */
  async function makeTemplate(
    path: string,
    { name, description }: TemplateEntry,
    [first, ...others]: readonly TemplateVersion[],
    faults: string[],
  ): Promise<number | null> {
    const form = { name, ...(description !== '' && { description }), ...(first && fieldsOf(first, false)) }
    const answer = await client.call('POST', path, { form })
    if (answer.status !== 200) {
      faults.push(errorText(answer))
      return null
    }
    return (first ? 1 : 0) + (await postVersions(path, name, others, faults))
  }

  async function addVersions(
    path: string,
    name: string,
    versions: readonly TemplateVersion[],
    faults: string[],
  ): Promise<number> {
    const at = `${path}/${pathPart(name)}/versions?limit=100`
    const answer = await client.call('GET', at)
    const template = answer.body?.['template'] as { versions: { tag: string }[] } | undefined
    if (answer.status !== 200 || !template) {
      faults.push(errorText(answer))
      return 0
    }
    const tags = new Set(template.versions.map(({ tag }) => tag))
    const missing = versions.filter(({ tag }) => !tags.has(tag.toLowerCase()))
    return postVersions(path, name, missing, faults)
  }

  async function postVersions(
    path: string,
    name: string,
    versions: readonly TemplateVersion[],
    faults: string[],
  ): Promise<number> {
    let count = 0
    for (const version of versions) {
      const form = fieldsOf(version, true)
      const answer: ApiAnswer = await client.call('POST', `${path}/${pathPart(name)}/versions`, {
        form,
      })
      if (answer.status === 200) count++
      else faults.push(`version ${version.tag}: ${errorText(answer)}`)
    }
    return count
  }

  return oneByOne(write)
}

/** `isFurther`: of a template that has a version; the first one is active in any case. */
function fieldsOf(version: TemplateVersion, isFurther: boolean): Record<string, string> {
  const { tag, template, mjml, comment, active, headers, sample } = version
  return {
    tag,
    ...(mjml === '' ? { template } : { mjml }),
    ...(comment !== '' && { comment }),
    ...(isFurther && active && { active: 'yes' }),
    ...(Object.keys(headers).length > 0 && { headers: JSON.stringify(headers) }),
    ...(sample && { sample: JSON.stringify(sample) }),
  }
}

/** Why the service would refuse a version; MJML is left to the service. */
function faultOf({ template, mjml, headers }: TemplateVersion): string | null {
  if (mjml !== '') return null
  if (template === '') return 'has no content'
  try {
    compileProgram(template, { escaped: true })
    for (const text of Object.values(headers)) compileProgram(text, { escaped: false })
    return null
  } catch (error) {
    if (error instanceof TemplateFault) return error.message
    throw error
  }
}
