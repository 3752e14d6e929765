/** A noted call as a command for a shell: the key is `$API_KEY`, and what was not kept is `{name}`. Pure. */
import type { KeyRequestRow } from '../../platform/store/schema.ts'

/** What an operation with a body takes is not kept. */
const DOCUMENT = '{body}'

/** @param baseUrl public address, without a final slash */
export function curlOf(
  row: Pick<KeyRequestRow, 'method' | 'path' | 'form' | 'given_json' | 'acted_for'>,
  { baseUrl, headerPrefix }: { baseUrl: string; headerPrefix: string },
): string {
  const pairs = Object.entries(JSON.parse(row.given_json) as Record<string, unknown>).flatMap(
    ([name, value]): [string, string][] =>
      Array.isArray(value)
        ? value.map((one) => [name, String(one)])
        : [[name, value === null ? `{${name}}` : String(value)]],
  )
  return [
    'curl -s --user "api:$API_KEY"',
    ...(row.method === 'GET' ? [] : [row.method === 'HEAD' ? '-I' : `-X ${row.method}`]),
    // Braces would be alternatives to curl.
    ...(row.path.includes('{') ? ['-g'] : []),
    quoted(`${baseUrl}${row.path}`),
    ...(row.acted_for === null ? [] : [`-H ${quoted(`${headerPrefix}On-Behalf-Of: ${row.acted_for}`)}`]),
    ...fieldsOf(row.form, pairs),
  ].join(' ')
}

function fieldsOf(form: KeyRequestRow['form'], pairs: readonly (readonly [string, string])[]): string[] {
  if (form === 'json') return [`-H ${quoted('Content-Type: application/json')}`, `-d ${quoted(DOCUMENT)}`]
  const option = form === 'multipart' ? '--form-string' : '--data-urlencode'
  const fields = pairs.map(([name, value]) => `${option} ${quoted(`${name}=${value}`)}`)
  return form === 'query' && fields.length > 0 ? ['-G', ...fields] : fields
}

/** One word of a POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
