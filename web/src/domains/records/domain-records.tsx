import { CopyButton } from '../../base/copy-button.tsx'
import type { DomainDns, ExplainedRecord, RecordToPublish } from '../domains-api.ts'
import { RecordStateBadge } from '../state-badge.tsx'
import { DOMAIN_TEXT as TEXT } from '../text.ts'
import { advice, foundToShow, isNeeded, recordGroups, recordState, recordTitle } from './records.ts'

/** Every record to publish, by purpose, with the state of DNS; DMARC last, as advice. */
export function DomainRecords({ dns }: { dns: DomainDns }) {
  return (
    <>
      {recordGroups(dns.records).map(({ title, purpose, records }) => (
        <section className="record-group" aria-label={title} key={title}>
          <h2>{title}</h2>
          <p>{purpose}</p>
          {records.map((explained) => (
            <RecordCard
              key={`${labelOf(explained.record)} ${explained.record.value}`}
              explained={explained}
            />
          ))}
        </section>
      ))}
      <Dmarc dmarc={dns.dmarc} />
    </>
  )
}

/** Has no record before the first check: until then it is unknown whether there is a policy. */
function Dmarc({ dmarc }: { dmarc: DomainDns['dmarc'] }) {
  const { record } = dmarc
  return (
    <section className="record-group" aria-label={TEXT.dmarc}>
      <h2>{TEXT.dmarc}</h2>
      <p>{TEXT.dmarcWhy}</p>
      {record === undefined ? (
        <div className="panel record-card dimmed">{TEXT.dmarcLater}</div>
      ) : (
        <RecordCard explained={{ ...dmarc, record }} />
      )}
    </section>
  )
}

function RecordCard({ explained }: { explained: ExplainedRecord }) {
  const { record } = explained
  const state = recordState(explained)
  return (
    <article className="panel record-card" data-state={state} aria-label={labelOf(record)}>
      <header>
        <span className="record-type">{record.type}</span>
        <h3>{recordTitle(record)}</h3>
        {record.purpose === 'dkim' && record.is_active && <span className="tag">{TEXT.signs}</span>}
        <span className="grow" />
        <RecordStateBadge state={state} isNeeded={isNeeded(record)} />
      </header>
      <dl className="record-fields">
        <RecordField name={TEXT.host} text={record.name} what={TEXT.theHost} />
        {record.priority !== undefined && (
          <RecordField name={TEXT.priority} text={String(record.priority)} what={TEXT.thePriority} />
        )}
        <RecordField name={TEXT.value} text={record.value} what={TEXT.theValue} />
      </dl>
      {state !== 'unchecked' && <Look explained={explained} />}
    </article>
  )
}

/** Characters from which on a value may not fit its box on a phone. */
const LONG_VALUE = 250

/** One copied field of a record. */
export function RecordField({ name, text, what }: { name: string; text: string; what: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="record-text" tabIndex={text.length > LONG_VALUE ? 0 : undefined}>
        {text}
      </dd>
      <dd className="record-copy">
        <CopyButton text={text} what={what} />
      </dd>
    </div>
  )
}

/** The answer of DNS, and what to change. */
function Look({ explained }: { explained: ExplainedRecord }) {
  const { record, server, asked } = explained
  const found = foundToShow(explained)
  return (
    <div className="record-look">
      <p>{advice(explained, record.value)}</p>
      {found.length > 0 && (
        <dl className="record-fields">
          <div>
            <dt>{TEXT.found}</dt>
            <dd className="record-text">
              {found.map((text) => (
                <div key={text}>{text}</div>
              ))}
            </dd>
          </div>
        </dl>
      )}
      {server !== '' && <p className="dimmed breakable">{TEXT.answered(server, asked)}</p>}
    </div>
  )
}

/** Unique on the page: several mail hosts share one name. */
const labelOf = ({ type, name, value }: RecordToPublish) =>
  type === 'MX' ? `${type} ${name} ${value}` : `${type} ${name}`
