/** One operation of the API: parameters, answers, examples. Made from GET /openapi.json. */
import { Badge, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { CopyButton } from '../base/copy-button.tsx'
import { PageHeader, Panel } from '../shared/page/page.tsx'
import { withSearch } from '../shared/page/search.ts'
import {
  type DescribedResponse,
  type Field,
  fieldOf,
  fieldsOf,
  type Operation,
  type Reference,
  type Rights,
} from './description.ts'
import { exampleAnswer, exampleOf } from './example.ts'
import { NoSuchOperation } from './reference-page.tsx'
import { referenceQuery } from './reference-query.ts'
import { LANGUAGES, snippetOf } from './snippets.ts'
import { TEXT } from './text.ts'
import { Words } from './words.tsx'

const route = getRouteApi('/docs/$operation')
const back = { to: '/docs', label: TEXT.all }

export function OperationPage() {
  const { operation: id } = route.useParams()
  const { data: reference } = useQuery(referenceQuery)
  const operation = reference?.byId.get(id)
  if (reference === undefined) return null
  if (operation === undefined) return <NoSuchOperation />
  const { method, path, summary, description, deprecated, body } = operation
  const url = reference.baseUrl + path
  return (
    <>
      <PageHeader
        title={summary}
        back={back}
        beside={
          deprecated && (
            <Badge variant="light" color="orange" tt="none">
              {TEXT.deprecated}
            </Badge>
          )
        }
        lead={description && <Words text={description} />}
      />
      <div className="reference-call">
        <span className="reference-method" data-method={method}>
          {method}
        </span>
        <code className="breakable grow">{path}</code>
        <CopyButton text={url} what={TEXT.url} />
      </div>
      <Code operation={operation} reference={reference} />
      <Panel title={TEXT.who}>
        <RightsWords rights={operation.rights} />
      </Panel>
      <Fields title={TEXT.path} fields={parametersIn('path', operation)} />
      <Fields title={TEXT.query} fields={parametersIn('query', operation)} />
      {body && (
        <Fields
          title={TEXT.body}
          beside={body.types.join(', ')}
          {...(body.description !== undefined && { lead: body.description })}
          fields={fieldsOf(body.schema, reference)}
        />
      )}
      <Panel title={TEXT.responses}>
        <ul className="reference-fields">
          {operation.responses.map(([status, response]) => (
            <ResponseItem key={status} status={status} response={response} reference={reference} />
          ))}
        </ul>
      </Panel>
    </>
  )
}

const parametersIn = (place: string, { parameters }: Operation) =>
  parameters
    .filter((parameter) => parameter.in === place)
    .map(({ name, schema, required, description }) => fieldOf(name, schema, required === true, description))

/** The language is in the URL, and is kept while moving through the list. */
function Code({ operation, reference }: { operation: Operation; reference: Reference }) {
  const { code } = route.useSearch()
  const navigate = useNavigate({ from: '/docs/$operation' })
  const chosen = LANGUAGES.find(([language]) => language === code)?.[0] ?? 'curl'
  const request = exampleOf(operation, reference)
  return (
    <Panel title={TEXT.code} flush>
      <Tabs
        value={chosen}
        keepMounted={false}
        onChange={(language) =>
          void navigate({
            to: '.',
            replace: true,
            search: (old) => withSearch(old, { code: language ?? undefined }),
          })
        }
      >
        <Tabs.List>
          {LANGUAGES.map(([language, label]) => (
            <Tabs.Tab key={language} value={language}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {LANGUAGES.map(([language, label]) => {
          const text = snippetOf(language, request)
          return (
            <Tabs.Panel key={language} value={language} className="with-corner">
              <pre className="reference-code">{text}</pre>
              <span className="corner">
                <CopyButton text={text} what={TEXT.codeWhat(label)} />
              </span>
            </Tabs.Panel>
          )
        })}
      </Tabs>
    </Panel>
  )
}

function RightsWords({ rights }: { rights: Rights }) {
  if (rights.public) return TEXT.anybody
  const { roles = [], area, access, only, public_key } = rights
  const who = roles.length === 0 ? TEXT.nobody : TEXT.roles(roles.join(', '))
  const limits = [only && TEXT.only[only], public_key && TEXT.publicKey].filter(Boolean)
  return (
    <p className="reference-rights">
      {[who, ...limits].join(' ')}{' '}
      <span className="dimmed">
        {area}, {access}
      </span>
    </p>
  )
}

function Fields(props: { title: string; beside?: string; lead?: string; fields: readonly Field[] }) {
  const { title, beside, lead, fields } = props
  if (fields.length === 0 && lead === undefined) return null
  return (
    <Panel title={title} beside={beside && <span className="dimmed breakable">{beside}</span>}>
      {lead && (
        <p className="reference-rights">
          <Words text={lead} />
        </p>
      )}
      <FieldList fields={fields} />
    </Panel>
  )
}

function FieldList({ fields }: { fields: readonly Field[] }) {
  if (fields.length === 0) return null
  return (
    <ul className="reference-fields">
      {fields.map((field) => (
        <li key={field.name}>
          <div className="reference-field-head">
            <code className="breakable">{field.name}</code>
            <span className="dimmed">{field.type}</span>
            {field.required && <span className="reference-required">{TEXT.required}</span>}
          </div>
          {field.description && (
            <p>
              <Words text={field.description} />
            </p>
          )}
          {field.values.length > 0 && <Values label={TEXT.oneOf} values={field.values} />}
          {field.default !== undefined && <Values label={TEXT.default} values={[field.default]} />}
        </li>
      ))}
    </ul>
  )
}

function Values({ label, values }: { label: string; values: readonly string[] }) {
  return (
    <p className="reference-values">
      <span className="dimmed">{label}</span>
      {values.map((value) => (
        <code key={value} className="tag">
          {value}
        </code>
      ))}
    </p>
  )
}

function ResponseItem(props: { status: string; response: DescribedResponse; reference: Reference }) {
  const { status, response, reference } = props
  const [content] = Object.entries(response.content ?? {})
  const schema = content?.[1].schema
  return (
    <li>
      <div className="reference-field-head">
        <code>{status}</code>
        <span>
          <Words text={response.description} />
        </span>
        {content && <span className="dimmed">{content[0]}</span>}
      </div>
      {schema && <FieldList fields={fieldsOf(schema, reference)} />}
      {schema && status.startsWith('2') && content[0] === 'application/json' && (
        <details>
          <summary>{TEXT.example}</summary>
          <pre className="reference-code">{JSON.stringify(exampleAnswer(schema, reference), null, 2)}</pre>
        </details>
      )}
    </li>
  )
}
