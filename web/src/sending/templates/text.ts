/** Texts of the pages of templates. */
export const TEXT = {
  templates: 'Templates',
  lead: 'Mail whose words you change without changing your program. A call names the template and gives its variables.',
  newTemplate: 'New template',
  search: 'Search templates',
  ofAccount: 'All domains (account)',
  name: 'Name',
  nameHint: 'Programs send with this name. Letters, digits and hyphens are best.',
  description: 'Description',
  created: 'Created',
  startWith: 'Start with',
  starts: { html: 'HTML', blocks: 'Blocks', mjml: 'MJML', plain: 'Empty' },
  startHints: {
    html: 'One column of HTML with Handlebars expressions.',
    blocks:
      'Texts, buttons and pictures put together without HTML. They are MJML, which can be edited as source too.',
    mjml: 'MJML is compiled to HTML that looks right in all mail programs.',
    plain: 'Nothing but a Handlebars expression.',
  },
  create: 'Create',
  cancel: 'Cancel',
  rename: 'Rename',
  renameTitle: 'Name and description',
  renameWhy: 'Mail that names the template by its old name is refused then. What is queued is not affected.',
  renamed: (name: string) => `Template ${name} saved`,
  none: 'No templates yet',
  noneHere: (domain: string) => `${domain} has no templates of its own`,
  noneWhy:
    'A template keeps subject and content here. You send it by name, with variables such as a name or a link.',
  noneFound: (q: string) => `No template has “${q}” in its name.`,
  gone: (name: string) => `There is no template ${name}`,
  goneWhy: 'It was deleted or renamed, or it belongs to another domain.',
  noVersion: 'This template has no content yet',
  noVersionWhy: 'Write its first version here. It becomes the active one.',
  views: { edit: 'Edit', versions: 'Versions', compare: 'Compare' },
  viewsLabel: 'Views of the template',
  active: 'Active',
  version: 'Version',
  engine: 'Format',
  engines: { handlebars: 'HTML', mjml: 'MJML' },
  ways: { blocks: 'Blocks', mjml: 'MJML', handlebars: 'HTML' },
  content: 'Content',
  contentHint: 'Handlebars: {{name}}, {{#if x}}…{{/if}}, {{#each items}}…{{/each}}',
  subject: 'Subject',
  from: 'From',
  replyTo: 'Reply-To',
  sample: 'Sample data',
  sampleWhy:
    'Values for the preview and for tests. They are stored with the version, for everybody who works on it.',
  noValue: 'no value',
  yes: 'yes',
  no: 'no',
  items: (count: number) => `${count.toLocaleString('en')} ${count === 1 ? 'item' : 'items'}`,
  addItem: 'Add an item',
  addItemTo: (name: string) => `Add an item to ${name}`,
  removeItem: 'Remove the last',
  removeItemOf: (name: string) => `Remove the last item of ${name}`,
  variables: 'Variables for the preview (JSON)',
  notJson: (why: string) => `Not valid JSON: ${why}`,
  notObject: 'The variables must be a JSON object, such as {"name": "Ada"}.',
  preview: 'Preview',
  previewOf: 'The template as it is sent',
  previewKinds: { desk: 'Desk', phone: 'Phone', text: 'Text' },
  noSubject: '(no subject)',
  missing: 'Missing variables',
  addMissing: 'Add them',
  cannotRender: 'This cannot be sent',
  save: 'Save',
  saveNew: 'Save as a new version',
  saveLive: 'Mail that is sent from now on has the new content.',
  saved: (tag: string) => `Version ${tag} saved`,
  unsaved: 'Not saved',
  discard: 'Discard',
  newVersion: 'Save as a new version',
  tag: 'Tag',
  comment: 'Comment',
  commentHint: 'What is different, for your colleagues.',
  activateNow: 'Make it the active version',
  versionSaved: (tag: string) => `Version ${tag} stored`,
  activate: 'Activate',
  activated: (tag: string) => `Version ${tag} is active`,
  compare: 'Compare',
  deleteVersion: (tag: string) => `Delete version ${tag}`,
  deleteVersionWhy:
    'Its content is lost. If it is the active version, the newest remaining one becomes active.',
  versionDeleted: (tag: string) => `Version ${tag} deleted`,
  deleteTemplate: 'Delete this template',
  deleteWhy:
    'All its versions are lost, and programs that send with it get an error. Mail that is queued is not affected.',
  deleted: (name: string) => `Template ${name} deleted`,
  left: 'Left',
  right: 'Right',
  sameContent: 'The two versions have the same content.',
  oneVersion: 'There is one version only. Save a new one to compare it with.',
  changedLines: (count: number) =>
    `${count.toLocaleString('en')} ${count === 1 ? 'line differs' : 'lines differ'}`,
  onlyLeft: 'only left',
  onlyRight: 'only right',
  sendTest: 'Send a test',
  sendTestOf: (tag: string) => `Send a test of version ${tag}`,
  to: 'To',
  domain: 'Send from domain',
  fromHint: 'The template has no From of its own.',
  send: 'Send',
  sent: 'The message is on its way.',
  openMessage: 'Open the message',
  savedOnly: 'The test has the saved content, not what you have changed since.',
  leave: 'Leave without saving?',
  leaveWhy: 'What you changed in this version is lost.',
  leaveAction: 'Leave',
} as const

const MJML_START = `<mjml>
  <mj-body background-color="#f4f5f6">
    <mj-section background-color="#ffffff" border-radius="12px" padding="24px">
      <mj-column>
        <mj-text font-size="22px" font-weight="600">Hello {{name}}</mj-text>
        <mj-text line-height="1.6">{{message}}</mj-text>
        <mj-button href="{{link}}" background-color="#0f766e" align="left">Open</mj-button>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
`

/** What a new template begins with. */
export const STARTS = {
  html: `<!doctype html>
<html lang="en">
  <body style="margin: 0; padding: 24px; background: #f4f5f6; font-family: system-ui, sans-serif; color: #1a202c">
    <div style="max-width: 560px; margin: 0 auto; padding: 32px; background: #ffffff; border-radius: 12px">
      <h1 style="margin: 0 0 16px; font-size: 22px">Hello {{name}}</h1>
      <p style="margin: 0 0 24px; line-height: 1.6">{{message}}</p>
      <a href="{{link}}" style="display: inline-block; padding: 12px 20px; border-radius: 8px; background: #0f766e; color: #ffffff; text-decoration: none">Open</a>
    </div>
  </body>
</html>
`,
  blocks: MJML_START,
  mjml: MJML_START,
  plain: 'Hello {{name}}\n',
} as const
