/**
 * Tests that prove each operation, field, error and limit of templates, mailing lists and suppressions. Keys are
 * those of the specification and of the contract; a value names a test file and the tests in it.
 */
export type Proof = readonly [file: string, ...tests: readonly [string, ...string[]]]

const TEMPLATES = 'src/sending/templates/routes.test.ts'
const TEMPLATES_JS = 'src/sending/templates/mailgun-js.test.ts'
const MJML = 'src/sending/templates/rendering/mjml.test.ts'
const TEMPLATE_SENDS = 'test/scenarios/template-sends.test.ts'
const LISTS = 'src/sending/lists/routes.test.ts'
const UPLOADS = 'src/sending/lists/upload-tasks.test.ts'
const POSTS = 'test/scenarios/list-posts.test.ts'
const RECORDS = 'src/sending/suppressions/routes.test.ts'
const IMPORTS = 'src/sending/suppressions/import.test.ts'
const STOPS = 'test/scenarios/suppressions.test.ts'

const STORED: Proof = [TEMPLATES, 'a template with content is stored with an active version']
const UPDATED: Proof = [TEMPLATES, 'updating changes what is given and nothing else']
const PAGED: Proof = [
  TEMPLATES_JS,
  'lists are paged forwards and backwards by the links that the client reads',
]
const VERSIONS_PAGED: Proof = [TEMPLATES, 'versions are paged by tag in the order of their making']
const COPIED: Proof = [
  TEMPLATES,
  'copying a version takes everything over; the copy is inactive, an overwritten one stays as it was',
]
const FIRST_VERSION: Proof = [
  TEMPLATES,
  'a template without content has no versions, and its first one is active in any case',
]
const VERSION_DELETED: Proof = [TEMPLATES, 'deleting the active version makes the newest that remains active']
const TEMPLATE_FAULT: Proof = [TEMPLATES, 'each fault has its own answer and leaves nothing behind']

export const TEMPLATE_PROOFS: Record<string, Proof> = {
  'list templates': PAGED,
  'create template': STORED,
  'delete all templates': [
    TEMPLATES,
    'the 101st template is refused; a limit over 100 is cut; all are deleted at once',
  ],
  'get template': STORED,
  'update template': UPDATED,
  'delete template': [TEMPLATES_JS, 'templates: create, read, update, delete one and all'],
  'list versions': VERSIONS_PAGED,
  'add version': FIRST_VERSION,
  'get version': STORED,
  'update version': UPDATED,
  'delete version': VERSION_DELETED,
  'copy version': COPIED,
  'rename template': [TEMPLATES, 'renaming'],
  'copy template': [
    TEMPLATES,
    'goes to domains and accounts of the caller; what fails is listed, the rest is done',
  ],
  page: PAGED,
  limit: PAGED,
  p: PAGED,
  name: STORED,
  description: STORED,
  createdBy: STORED,
  template: STORED,
  tag: STORED,
  comment: STORED,
  active: FIRST_VERSION,
  headers: STORED,
  engine: STORED,
  mjml: [TEMPLATES, 'MJML is kept as source and stored as HTML, until other content takes its place'],
  id: STORED,
  createdAt: STORED,
  version: STORED,
  versions: VERSIONS_PAGED,
  parsedhandlebar: STORED,
  'new_version_name exists': COPIED,
  'headers of the message win': [
    TEMPLATE_SENDS,
    'template headers are not in the accepted event, and are not used if the call has its own',
  ],
  'rendered into mail': [TEMPLATE_SENDS, 'a stored template is rendered into mail as the call says'],
  'fixed at acceptance': [
    TEMPLATE_SENDS,
    'the version is fixed at acceptance; recipients of a batch get their own rendering',
  ],
  'into MIME': [
    TEMPLATE_SENDS,
    'the rendered template replaces the html of a MIME message, and nothing else',
  ],
  'render error': [
    TEMPLATE_SENDS,
    'a template that fails for one recipient is a rejected event of that one only',
  ],
  '400 no such template, version or active version': [
    TEMPLATE_SENDS,
    'a call that refers to a missing template or version is refused at once',
  ],
  '400 missing name, template, tag': TEMPLATE_FAULT,
  '400 name': TEMPLATE_FAULT,
  '400 engine': TEMPLATE_FAULT,
  '400 headers': TEMPLATE_FAULT,
  '400 name exists': TEMPLATE_FAULT,
  '400 tag exists': TEMPLATE_FAULT,
  '400 nothing to change': TEMPLATE_FAULT,
  '400 41st version': [TEMPLATES, 'the 41st version is refused, as new version and as copy'],
  '400 101st template': [
    TEMPLATES,
    'the 101st template is refused; a limit over 100 is cut; all are deleted at once',
  ],
  '400 over 100 KB': TEMPLATE_FAULT,
  '400 syntax': TEMPLATE_FAULT,
  '400 MJML': [MJML, 'refuses ${what}'],
  '404 template': TEMPLATE_FAULT,
  '404 version': TEMPLATE_FAULT,
  '404 domain': [TEMPLATES, 'an unknown domain has no templates'],
  '401': [TEMPLATES, 'without a key, and with a wrong one'],
  '403': [TEMPLATES, 'a key that may only read changes nothing'],
}

const NEW_LIST: Proof = [LISTS, 'a new list has the defaults, and its name from the address']
const LIST_FIELDS: Proof = [LISTS, 'every field of a list is stored, changed alone, and shown']
const LISTED: Proof = [LISTS, 'lists come by address, with limit, skip, exact address and pages']
const MEMBERS: Proof = [LISTS, 'members are added, read in both shapes, changed field by field and deleted']
const FILTERED: Proof = [LISTS, 'members are filtered by address and by subscription, with limit and skip']
const MEMBER_PAGES: Proof = [
  LISTS,
  'pages of members lead from first to an empty one behind the last, and back',
]
const UPSERT: Proof = [
  LISTS,
  'upsert updates the given fields only; without it a duplicate is refused and nothing changes',
]
const SMALL_JSON: Proof = [
  LISTS,
  'up to 100 JSON entries are worked off before the answer, with their events',
]
const LARGE_JSON: Proof = [
  LISTS,
  'over 100 JSON entries go in the background; 1,000 are taken, 1,001 are not',
]
const CSV: Proof = [LISTS, 'a CSV file goes in the background; rows fall back to the subscribed of the call']
const LIST_ERRORS: Proof = [LISTS, 'every documented error has its text']
const POST_TO_LIST: Proof = [POSTS, 'a post reaches each subscribed member once, as mail of the list']
const POST_FIELDS: Proof = [POSTS, 'list fields follow the access level, the preference and the call']

export const LIST_PROOFS: Record<string, Proof> = {
  'create list': NEW_LIST,
  'list lists': LISTED,
  'page lists': LISTED,
  'get list': NEW_LIST,
  'update list': LIST_FIELDS,
  'delete list': [LISTS, 'a deleted list is gone with its members'],
  'list members': FILTERED,
  'page members': MEMBER_PAGES,
  'add member': MEMBERS,
  'members.json': SMALL_JSON,
  'members.csv': CSV,
  'get member': MEMBERS,
  'update member': MEMBERS,
  'delete member': MEMBERS,
  'list address': [LISTS, 'a moved list keeps its members, and its old address stops at once'],
  'list name': LIST_FIELDS,
  description: LIST_FIELDS,
  access_level: POST_FIELDS,
  reply_preference: POST_FIELDS,
  created_at: NEW_LIST,
  members_count: UPSERT,
  list_id: POST_FIELDS,
  limit: FILTERED,
  'limit over the maximum': [LISTS, 'a limit over 100 is cut'],
  skip: FILTERED,
  'exact address': FILTERED,
  'pages and pivot': MEMBER_PAGES,
  'member address': MEMBERS,
  'member name': POST_TO_LIST,
  vars: POST_TO_LIST,
  subscribed: POST_TO_LIST,
  'subscribed as filter': FILTERED,
  'subscribed of an upload': CSV,
  upsert: UPSERT,
  'upsert of an upload': [
    LISTS,
    'with upsert, JSON entries update members, and a missing subscribed means true',
  ],
  'without upsert, an upload': [
    UPLOADS,
    'without upsert an upload leaves members as they are, and tells nothing of them',
  ],
  'task-id': SMALL_JSON,
  'over 100 entries in the background': LARGE_JSON,
  'recipient-variables over vars': [
    POSTS,
    'recipient-variables override those of members; every event refers to a stored message',
  ],
  'suppressed members': [
    POSTS,
    'suppressions of the domain stop copies, test mode sends none, and tags count',
  ],
  loops: [POSTS, 'mail from a list is accepted but not distributed; a list within a list gets one mail'],
  'cancelled posts': [
    POSTS,
    'a scheduled post is cancelled with all its copies, and dropping the queue ends its expansion',
  ],
  'deleted domain': [
    POSTS,
    'a list outlives its domain and works again with a new one; posts of the deleted domain through other lists end',
  ],
  '400 access_level': LIST_ERRORS,
  '400 reply_preference': LIST_ERRORS,
  '400 address missing or bad': LIST_ERRORS,
  '400 domain': LIST_ERRORS,
  '400 duplicate list': LIST_ERRORS,
  '400 member exists': UPSERT,
  '400 vars': LIST_ERRORS,
  '400 members': LIST_ERRORS,
  '400 1,001 entries': LARGE_JSON,
  '400 CSV too big': LIST_ERRORS,
  '400 CSV rows': [LISTS, 'a CSV file with rows that cannot be read is refused whole, naming them'],
  '404 list': LIST_ERRORS,
  '404 list of a bulk call': LIST_ERRORS,
  '404 member': LIST_ERRORS,
  '429': [LISTS, 'lists on PostgreSQL, and the rate limit of list operations'],
  '401': LIST_ERRORS,
  '403': [LISTS, 'a key that may only read changes nothing'],
}

const ADDED: Proof = [RECORDS, 'adding one to ${kind} as ${JSON.stringify(form)}']
const RECORD_FIELDS: Proof = [RECORDS, 'each field of a record comes back']
const MANY: Proof = [RECORDS, 'many at a time, with the text of the kind']
const RECORD_PAGES: Proof = [RECORDS, 'links and pages: every record once, whatever vanishes meanwhile']
const REMOVED: Proof = [RECORDS, 'removing one, and clearing what is empty']
const IMPORTED: Proof = [RECORDS, 'imports take the columns of each kind, in any order, plain or packed']
const REFUSED: Proof = [RECORDS, '${method} ${rest} with ${what} gives ${status}']
const STOPPED: Proof = [STOPS, 'each list stops to, cc and bcc alike, and no other recipient']

export const SUPPRESSION_PROOFS: Record<string, Proof> = {
  list: RECORD_PAGES,
  read: RECORD_FIELDS,
  'add one': ADDED,
  'add many': MANY,
  import: IMPORTED,
  remove: REMOVED,
  clear: REMOVED,
  limit: RECORD_PAGES,
  page: RECORD_PAGES,
  'address as pivot': RECORD_PAGES,
  term: RECORD_PAGES,
  address: ADDED,
  code: RECORD_FIELDS,
  error: RECORD_FIELDS,
  created_at: [RECORDS, 'a time that is unset or to come is now, a long error is cut'],
  tags: RECORD_FIELDS,
  'tag to remove': [RECORDS, 'a tag is removed alone, by query or form'],
  'domain of an allowlist entry': ADDED,
  reason: RECORD_FIELDS,
  'bad rows of an import': [IMPORTS, 'bad rows are skipped and counted in the log'],
  'the same file twice': [RECORDS, 'importing the same file twice leaves the same list'],
  'stops mail': STOPPED,
  'order of the lists': [STOPS, 'in the order bounce, unsubscribe, complaint'],
  'tags of a message': [STOPS, 'an unsubscribe with tags stops only mail with one of them'],
  'automatic bounce': [STOPS, 'a mailbox that does not exist is tried once and never again'],
  allowlist: [STOPS, 'the allowlist prevents bounce records, test mode creates none'],
  'waiting mail': [STOPS, 'additions and removals affect mail that waits for a retry'],
  audit: [RECORDS, 'every change is in the audit log with its key, newest first'],
  '400 address missing or bad': REFUSED,
  '400 created_at': REFUSED,
  '400 over 1,000': [RECORDS, 'a thousand records are taken, one more is not, and one bad one refuses all'],
  '400 JSON': REFUSED,
  '400 CSV header': [RECORDS, 'a file without a usable header is refused at once'],
  '400 page': REFUSED,
  '404 record': REFUSED,
  '404 tag': [RECORDS, 'a tag is removed alone, by query or form'],
  '404 domain': [RECORDS, 'a domain of nobody is not found by any operation'],
  '413': [RECORDS, 'a file of more than 25 MB is refused'],
  '403': [RECORDS, 'keys without the right are refused, an analyst reads the allowlist'],
}

/** Calls of the public JavaScript client, by part of the client, and the test that makes each. */
export const CLIENT_PROOFS: Record<string, { file: string; calls: string; others?: string }> = {
  'domains.domainTemplates': {
    file: TEMPLATES_JS,
    calls: `create createVersion destroy destroyAll destroyVersion get getVersion list listVersions update updateVersion`,
  },
  lists: {
    file: LISTS,
    calls: 'create destroy get list listByAddress update',
    // Verification of addresses is a separate area.
    others: 'cancelValidation validate validationResult',
  },
  'lists.members': {
    file: LISTS,
    calls: `createMember createMembers destroyMember getMember listMembers listMembersByAddress updateMember upload`,
  },
  suppressions: { file: STOPS, calls: 'create destroy destroyAll get list upload' },
}
