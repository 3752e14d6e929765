/**
 * A request as code. Each snippet is complete, sends every value as it stands, and reads the API key from the environment
 * variable API_KEY, so that no key gets into a file.
 */
import type { ExampleRequest, FormValue } from './example.ts'

export const LANGUAGES = [
  ['curl', 'curl'],
  ['javascript', 'JavaScript'],
  ['python', 'Python'],
  ['php', 'PHP'],
  ['ruby', 'Ruby'],
  ['go', 'Go'],
  ['java', 'Java'],
] as const
export type Language = (typeof LANGUAGES)[number][0]

export const snippetOf = (language: Language, request: ExampleRequest): string => WRITERS[language](request)

const WRITERS: Readonly<Record<Language, (request: ExampleRequest) => string>> = {
  curl: writeCurl,
  javascript: writeJavaScript,
  python: writePython,
  php: writePhp,
  ruby: writeRuby,
  go: writeGo,
  java: writeJava,
}

/** A string literal of JSON, which JavaScript, Python, Go and Java read alike. */
const quoted = (text: string) => JSON.stringify(text)
/** In a POSIX shell nothing but the quote itself is special between single quotes. */
const shellQuoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
/** PHP and Ruby: between single quotes only the quote and the backslash are special. */
const singleQuoted = (text: string) => `'${text.replaceAll(/['\\]/g, '\\$&')}'`

const indented = (text: string, by: string) => text.replaceAll('\n', `\n${by}`)
const isText = (value: FormValue): value is readonly [string, string] => typeof value[1] === 'string'
const hasFile = (values: readonly FormValue[]) => !values.every(isText)

function writeCurl({ method, url, needsKey, body }: ExampleRequest): string {
  const parts = [`curl --request ${method} ${shellQuoted(url)}`]
  if (needsKey) parts.push('--user "api:$API_KEY"')
  if (body?.kind === 'json') {
    parts.push("--header 'Content-Type: application/json'")
    parts.push(`--data ${shellQuoted(JSON.stringify(body.value, null, 2))}`)
  } else if (body !== undefined) {
    const option = body.kind === 'form' ? '--data-urlencode' : '--form-string'
    for (const [name, value] of body.values)
      parts.push(
        typeof value === 'string'
          ? `${option} ${shellQuoted(`${name}=${value}`)}`
          : `--form ${shellQuoted(`${name}=@${value.file}`)}`,
      )
  }
  return parts.join(' \\\n  ')
}

function writeJavaScript({ method, url, needsKey, body }: ExampleRequest): string {
  const before: string[] = []
  const options = [`method: ${quoted(method)}`]
  const headers: string[] = []
  if (needsKey) headers.push('Authorization: `Basic ${btoa(`api:${process.env.API_KEY}`)}`')
  if (body?.kind === 'json') {
    headers.push('"Content-Type": "application/json"')
    options.push(`body: JSON.stringify(${indented(JSON.stringify(body.value, null, 2), '  ')})`)
  } else if (body !== undefined) {
    if (hasFile(body.values)) before.push('import { openAsBlob } from "node:fs"', '')
    before.push(`const form = new ${body.kind === 'form' ? 'URLSearchParams' : 'FormData'}()`)
    for (const [name, value] of body.values)
      before.push(
        typeof value === 'string'
          ? `form.append(${quoted(name)}, ${quoted(value)})`
          : `form.append(${quoted(name)}, await openAsBlob(${quoted(value.file)}), ${quoted(value.file)})`,
      )
    options.push('body: form')
  }
  if (headers.length > 0) options.splice(1, 0, `headers: { ${headers.join(', ')} }`)
  return [
    ...before,
    `const response = await fetch(${quoted(url)}, {`,
    ...options.map((option) => `  ${option},`),
    '})',
    'console.log(response.status, await response.text())',
  ].join('\n')
}

function writePython({ method, url, needsKey, body }: ExampleRequest): string {
  const parts = [quoted(method), quoted(url)]
  if (needsKey) parts.push('auth=("api", os.environ["API_KEY"])')
  if (body?.kind === 'json') parts.push(`json=${indented(pythonOf(body.value), '    ')}`)
  else if (body?.kind === 'form')
    parts.push(`data=${indented(pythonOf(Object.fromEntries(body.values)), '    ')}`)
  else if (body !== undefined) {
    // With "files" the body is multipart; None as the name of a file makes it a plain field.
    const fields = body.values.map(([name, value]) =>
      typeof value === 'string'
        ? `        ${quoted(name)}: (None, ${quoted(value)}),\n`
        : `        ${quoted(name)}: open(${quoted(value.file)}, "rb"),\n`,
    )
    parts.push(`files={\n${fields.join('')}    }`)
  }
  return [
    ...(needsKey ? ['import os', ''] : []),
    'import requests',
    '',
    'response = requests.request(',
    ...parts.map((part) => `    ${part},`),
    ')',
    'print(response.status_code, response.text)',
  ].join('\n')
}

function pythonOf(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[${value.map(pythonOf).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const entries = Object.entries(value).map(
    ([name, inner]) => `    ${quoted(name)}: ${indented(pythonOf(inner), '    ')},\n`,
  )
  return entries.length === 0 ? '{}' : `{\n${entries.join('')}}`
}

function writePhp({ method, url, needsKey, body }: ExampleRequest): string {
  const options = [`CURLOPT_CUSTOMREQUEST => ${singleQuoted(method)}`, 'CURLOPT_RETURNTRANSFER => true']
  if (needsKey) options.push("CURLOPT_USERPWD => 'api:' . getenv('API_KEY')")
  if (body?.kind === 'json') {
    options.push("CURLOPT_HTTPHEADER => ['Content-Type: application/json']")
    options.push(`CURLOPT_POSTFIELDS => json_encode(${indented(phpOf(body.value), '    ')})`)
  } else if (body?.kind === 'form') {
    const fields = phpOf(Object.fromEntries(body.values))
    options.push(`CURLOPT_POSTFIELDS => http_build_query(${indented(fields, '    ')})`)
  } else if (body !== undefined) {
    const parts = body.values.map(([name, value]) =>
      typeof value === 'string'
        ? `${singleQuoted(name)} => ${singleQuoted(value)}`
        : `${singleQuoted(name)} => new CURLFile(${singleQuoted(value.file)})`,
    )
    options.push(`CURLOPT_POSTFIELDS => [\n${parts.map((part) => `        ${part},\n`).join('')}    ]`)
  }
  return [
    '<?php',
    `$curl = curl_init(${singleQuoted(url)});`,
    'curl_setopt_array($curl, [',
    ...options.map((option) => `    ${option},`),
    ']);',
    '$response = curl_exec($curl);',
    'echo curl_getinfo($curl, CURLINFO_RESPONSE_CODE), " ", $response, PHP_EOL;',
  ].join('\n')
}

function phpOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'string') return singleQuoted(value)
  if (Array.isArray(value)) return `[${value.map(phpOf).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const entries = Object.entries(value).map(
    ([name, inner]) => `    ${singleQuoted(name)} => ${indented(phpOf(inner), '    ')},\n`,
  )
  // An empty array would become [] in JSON.
  return entries.length === 0 ? 'new stdClass()' : `[\n${entries.join('')}]`
}

function writeRuby({ method, url, needsKey, body }: ExampleRequest): string {
  const name = `${method[0]}${method.slice(1).toLowerCase()}`
  const lines = [
    "require 'net/http'",
    ...(body?.kind === 'json' ? ["require 'json'"] : []),
    '',
    `uri = URI(${singleQuoted(url)})`,
    `request = Net::HTTP::${name}.new(uri)`,
  ]
  if (needsKey) lines.push("request.basic_auth('api', ENV.fetch('API_KEY'))")
  if (body?.kind === 'json') {
    lines.push("request['Content-Type'] = 'application/json'")
    lines.push(`request.body = JSON.generate(${rubyOf(body.value)})`)
  } else if (body !== undefined) {
    const pairs = body.values.map(([field, value]) =>
      typeof value === 'string'
        ? `  [${singleQuoted(field)}, ${singleQuoted(value)}],`
        : `  [${singleQuoted(field)}, File.open(${singleQuoted(value.file)}, 'rb')],`,
    )
    const type = body.kind === 'multipart' ? ", 'multipart/form-data'" : ''
    lines.push('request.set_form([', ...pairs, `]${type})`)
  }
  lines.push(
    "response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') { |http| http.request(request) }",
    'puts response.code, response.body',
  )
  return lines.join('\n')
}

function rubyOf(value: unknown): string {
  if (value === null || value === undefined) return 'nil'
  if (typeof value === 'string') return singleQuoted(value)
  if (Array.isArray(value)) return `[${value.map(rubyOf).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const entries = Object.entries(value).map(
    ([name, inner]) => `  ${singleQuoted(name)} => ${indented(rubyOf(inner), '  ')},\n`,
  )
  return entries.length === 0 ? '{}' : `{\n${entries.join('')}}`
}

const GO_CHECK = ['if err != nil {', '\tpanic(err)', '}']

function writeGo({ method, url, needsKey, body }: ExampleRequest): string {
  const imports = new Set(['fmt', 'io', 'net/http'])
  const before: string[] = []
  let content = 'nil'
  let type = ''
  if (body?.kind === 'json') {
    imports.add('strings')
    before.push(`body := strings.NewReader(${goOf(JSON.stringify(body.value, null, 2))})`)
    content = 'body'
    type = '"application/json"'
  } else if (body?.kind === 'form') {
    imports.add('net/url').add('strings')
    before.push('form := url.Values{}')
    for (const [name, value] of body.values.filter(isText))
      before.push(`form.Add(${quoted(name)}, ${quoted(value)})`)
    content = 'strings.NewReader(form.Encode())'
    type = '"application/x-www-form-urlencoded"'
  } else if (body !== undefined) {
    imports.add('bytes').add('mime/multipart')
    before.push('var body bytes.Buffer', 'form := multipart.NewWriter(&body)')
    body.values.forEach(([name, value], index) => {
      if (typeof value === 'string') {
        before.push(`form.WriteField(${quoted(name)}, ${quoted(value)})`)
        return
      }
      imports.add('os')
      const [file, part] = [`file${index}`, `part${index}`]
      before.push(`${file}, err := os.ReadFile(${quoted(value.file)})`, ...GO_CHECK)
      before.push(`${part}, err := form.CreateFormFile(${quoted(name)}, ${quoted(value.file)})`, ...GO_CHECK)
      before.push(`${part}.Write(${file})`)
    })
    before.push('form.Close()')
    content = '&body'
    type = 'form.FormDataContentType()'
  }
  if (needsKey) imports.add('os')
  const lines = [
    ...before,
    `request, err := http.NewRequest(${quoted(method)}, ${quoted(url)}, ${content})`,
    ...GO_CHECK,
    ...(type === '' ? [] : [`request.Header.Set("Content-Type", ${type})`]),
    ...(needsKey ? ['request.SetBasicAuth("api", os.Getenv("API_KEY"))'] : []),
    'response, err := http.DefaultClient.Do(request)',
    ...GO_CHECK,
    'defer response.Body.Close()',
    'answer, err := io.ReadAll(response.Body)',
    ...GO_CHECK,
    'fmt.Println(response.StatusCode, string(answer))',
  ]
  return [
    'package main',
    '',
    'import (',
    ...[...imports].sort().map((name) => `\t${quoted(name)}`),
    ')',
    '',
    'func main() {',
    ...lines.map((line) => `\t${line}`),
    '}',
  ].join('\n')
}

/** A raw literal, which may have lines, unless the text has a backtick. */
const goOf = (text: string) => (text.includes('`') ? quoted(text) : `\`${text}\``)

const JAVA_IMPORTS = [
  'java.net.URI',
  'java.net.http.HttpClient',
  'java.net.http.HttpRequest',
  'java.net.http.HttpRequest.BodyPublishers',
  'java.net.http.HttpResponse.BodyHandlers',
]
/** The library of Java has no multipart bodies. */
const JAVA_MULTIPART = [
  '',
  'static void add(ByteArrayOutputStream body, String boundary, String about, byte[] content) throws Exception {',
  '    var head = "--" + boundary + "\\r\\nContent-Disposition: form-data; " + about + "\\r\\n\\r\\n";',
  '    body.write(head.getBytes(UTF_8));',
  '    body.write(content);',
  '    body.write("\\r\\n".getBytes(UTF_8));',
  '}',
]

/** One file for Java 17 and newer: `java Call.java`. */
function writeJava({ method, url, needsKey, body }: ExampleRequest): string {
  const imports = new Set(JAVA_IMPORTS)
  const before: string[] = []
  let content = 'BodyPublishers.noBody()'
  let type = ''
  if (body?.kind === 'json') {
    before.push(`var json = ${javaBlock(JSON.stringify(body.value, null, 2))};`)
    content = 'BodyPublishers.ofString(json)'
    type = '"application/json"'
  } else if (body?.kind === 'form') {
    imports.add('java.net.URLEncoder').add('static java.nio.charset.StandardCharsets.UTF_8')
    const pairs = body.values
      .filter(isText)
      .map(
        ([name, value]) =>
          `${quoted(`${encodeURIComponent(name)}=`)} + URLEncoder.encode(${quoted(value)}, UTF_8)`,
      )
    before.push(`var form = String.join("&",\n    ${pairs.join(',\n    ')});`)
    content = 'BodyPublishers.ofString(form)'
    type = '"application/x-www-form-urlencoded"'
  } else if (body !== undefined) {
    imports.add('java.io.ByteArrayOutputStream').add('java.util.UUID')
    imports.add('static java.nio.charset.StandardCharsets.UTF_8')
    before.push('var boundary = UUID.randomUUID().toString();', 'var body = new ByteArrayOutputStream();')
    for (const [name, value] of body.values) {
      const about = `name="${name}"`
      if (typeof value === 'string') {
        before.push(`add(body, boundary, ${quoted(about)}, ${quoted(value)}.getBytes(UTF_8));`)
        continue
      }
      imports.add('java.nio.file.Files').add('java.nio.file.Path')
      const named = quoted(`${about}; filename="${value.file}"`)
      before.push(`add(body, boundary, ${named}, Files.readAllBytes(Path.of(${quoted(value.file)})));`)
    }
    before.push('body.write(("--" + boundary + "--\\r\\n").getBytes(UTF_8));')
    content = 'BodyPublishers.ofByteArray(body.toByteArray())'
    type = '"multipart/form-data; boundary=" + boundary'
  }
  if (needsKey) {
    imports.add('java.util.Base64')
    before.push(
      'var key = Base64.getEncoder().encodeToString(("api:" + System.getenv("API_KEY")).getBytes());',
    )
  }
  const main = [
    ...before,
    `var request = HttpRequest.newBuilder(URI.create(${quoted(url)}))`,
    ...(needsKey ? ['    .header("Authorization", "Basic " + key)'] : []),
    ...(type === '' ? [] : [`    .header("Content-Type", ${type})`]),
    `    .method(${quoted(method)}, ${content})`,
    '    .build();',
    'var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());',
    'System.out.println(response.statusCode() + " " + response.body());',
  ]
  const within = (lines: readonly string[], by: string) =>
    lines.map((line) => (line === '' ? '' : by + indented(line, by)))
  return [
    ...[...imports].sort().map((name) => `import ${name};`),
    '',
    'public class Call {',
    '    public static void main(String[] args) throws Exception {',
    ...within(main, '        '),
    '    }',
    ...within(body?.kind === 'multipart' ? JAVA_MULTIPART : [], '    '),
    '}',
  ].join('\n')
}

/** A text block, whose lines keep their distance from its closing quotes. */
const javaBlock = (text: string) => {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"""', '\\"""')
  return `"""\n    ${indented(escaped, '    ')}"""`
}
