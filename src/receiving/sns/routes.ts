/** Topics of SNS, for the operator, and the endpoint that SNS posts to (relays.md section 3). */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { BodyLimit } from '../../platform/http/request/body.ts'
import type { SnsTopicRow } from '../../platform/store/schema.ts'
import { originOfTopic, SNS_MESSAGE } from './message.ts'
import type { TakeNotice } from './notices.ts'
import { REMOVED, REMOVED_ANSWER, TAKEN, TAKEN_ANSWER, TOPIC, TOPICS, type TopicView } from './shapes.ts'
import { TOPICS_MAX, type Topics } from './topics.ts'

const api = operationsOf({ tag: 'Relays', auth: { area: 'account', only: 'first' } })
const PATH = '/sendwright/v1/sns/topics'
const ENDPOINT = '/sendwright/v1/sns/notifications'
const UNKNOWN_TOPIC = 'Topic not found'

/** SES cuts the header that it includes at 10 KB; as JSON within JSON, with everything else, it takes below 50 KB. */
const NOTICE_LIMIT: BodyLimit = { bytes: 128 * 1024, message: 'request size exceeds 128KiB limit' }

interface SnsRouteParts {
  topics: Topics
  take: TakeNotice
  baseUrl: string
}

export function snsRoutes({ topics, take, baseUrl }: SnsRouteParts): Operation[] {
  const viewOf = ({ arn, token, created_at, confirmed_at }: SnsTopicRow): TopicView => ({
    arn,
    endpoint: `${baseUrl}${ENDPOINT}/${token}`,
    confirmed_at: confirmed_at === null ? null : formatRfc3339(new Date(confirmed_at)),
    created_at: formatRfc3339(new Date(created_at)),
  })

  return [
    api.get(PATH, {
      id: 'listSnsTopics',
      summary: 'List the topics of Amazon SNS whose notifications are taken',
      description: 'For the first account only.',
      answers: { 200: TOPICS },
      async handler() {
        return { items: (await topics.list()).map(viewOf) }
      },
    }),
    api.put(`${PATH}/{arn}`, {
      id: 'addSnsTopic',
      summary: 'Take notifications of a topic of Amazon SNS, and confirm its subscription',
      description:
        'For the first account only. The answer has the URL to subscribe. A topic that is named stays as it is.',
      answers: { 200: TOPIC },
      async handler({ path: { arn } }) {
        if (originOfTopic(arn) === null)
          throw new BadRequest('arn is no Amazon Resource Name of a topic of SNS')
        const named = await topics.list()
        const isNew = !named.some((topic) => topic.arn === arn)
        if (isNew && named.length >= TOPICS_MAX) throw new BadRequest(`there may be ${TOPICS_MAX} topics`)
        await topics.add(arn)
        return viewOf((await topics.find(arn)) as SnsTopicRow)
      },
    }),
    api.delete(`${PATH}/{arn}`, {
      id: 'deleteSnsTopic',
      summary: 'Take no more notifications of a topic',
      description: 'For the first account only. Named again it has another URL.',
      answers: { 200: REMOVED_ANSWER },
      async handler({ path: { arn } }) {
        if (!(await topics.remove(arn))) throw new NotFound(UNKNOWN_TOPIC)
        return REMOVED
      },
    }),
    api.post(`${ENDPOINT}/{token}`, {
      id: 'takeSnsNotification',
      summary: 'For Amazon SNS: bounces and complaints of Amazon SES',
      description:
        'Without a login: who does not know the URL gets a 404 before the body is read, and a message without a valid signature of SNS a 403.',
      auth: 'public',
      audit: { exempt: 'what servers report of mail is an event' },
      bodyLimit: NOTICE_LIMIT,
      body: SNS_MESSAGE,
      answers: {
        200: TAKEN_ANSWER,
        403: 'Not signed by SNS, older than an hour, or of another topic',
        404: 'No topic has this URL',
      },
      async beforeBody({ path: { token } }) {
        const topic = await topics.atToken(token)
        if (topic === undefined) throw new NotFound(UNKNOWN_TOPIC)
        return topic
      },
      async handler({ found: topic, document }) {
        await take(topic, document())
        return TAKEN
      },
    }),
  ]
}
