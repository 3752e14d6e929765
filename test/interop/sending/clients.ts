/** The clients: where their code is from, and how each sends the mail. */
import { execFile } from 'node:child_process'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createTransport } from 'nodemailer'
import { addPackages, type PackageFiles, unpackFiles } from '../../support/npm-package.ts'
import { fromOf, MAIL, type Reach } from './mail.ts'
import { type N8nNode, runNode } from './n8n-host.ts'

const exec = promisify(execFile)
const INSTALL_MAX_MS = 300_000
const SEND_MAX_MS = 60_000

export interface Client {
  /** What is run, with its version. */
  version(): Promise<string>
  /** Setting of the environment that says where its code is, for a client that neither npm nor Debian has. */
  needs?: string
  /** Sends the mail once. `folder`: empty, of this client alone */
  send(reach: Reach, folder: string): Promise<void>
}

const STRAPI: PackageFiles = {
  spec: '@strapi/provider-email-mailgun@5.52.1',
  integrity:
    'sha512-RAnucyPObmRTuY5Yj7o1KGfgl9R0YXSI43U1pXk/3jrWtWW7aHzMCvMNkJYEK+rOBdwtEngTETNbIfrMnizGrg==',
  files: ['dist/index.js'],
}
const N8N: PackageFiles = {
  spec: 'n8n-nodes-base@2.41.2',
  integrity:
    'sha512-qUItyawxR1aR/t6Fgk0whYwBSDR+VOu5RkgAI3AElVI3dqPLLcCAawAMFc/N3GFG35//quOVRUwuc7a3mVLC0g==',
  files: ['dist/nodes/Mailgun/Mailgun.node.js', 'dist/utils/binary.js', 'dist/utils/utilities.js'],
}
/** What the files around the node load and the node does not use. */
const N8N_STAND_INS = {
  '@e965/xlsx': 'module.exports = {}',
  'iconv-lite': 'module.exports = {}',
  'n8n-workflow':
    "module.exports = { NodeConnectionTypes: { Main: 'main' }, NodeApiError: class extends Error { constructor(node, cause) { super(cause.message, { cause }) } } }",
}
/** What Supabase Auth sends with, in the version of its go.mod. */
const GOMAIL = 'gopkg.in/gomail.v2 v2.0.0-20160411212932-81ebce5c23df'
const TRANSPORT = 'nodemailer-mailgun-transport@2.1.5'

const attachments = [{ filename: MAIL.file.name, content: MAIL.file.content }]
const { to, subject, text, html, tag } = MAIL

export const CLIENTS: Readonly<Record<string, Client>> = {
  nodemailer: {
    version: async () => `nodemailer ${await installedVersion('nodemailer')}`,
    async send(reach) {
      const transport = createTransport(await smtpOptions(reach))
      await transport.sendMail({
        ...{ from: fromOf(reach), to, subject, text, html, attachments },
        headers: { 'X-Mailgun-Tag': tag },
      })
      transport.close()
    },
  },
  'nodemailer-mailgun-transport': {
    version: async () => TRANSPORT,
    async send(reach, folder) {
      const install = [
        'install',
        '--ignore-scripts',
        '--no-audit',
        '--no-fund',
        '--prefix',
        folder,
        TRANSPORT,
      ]
      await exec('npm', install, { cwd: folder, timeout: INSTALL_MAX_MS })
      const plugin = createRequire(join(folder, 'x.js'))('nodemailer-mailgun-transport') as (
        options: object,
      ) => Parameters<typeof createTransport>[0]
      const options = { auth: { api_key: reach.key, domain: reach.domain }, url: reach.url }
      const mail = { from: fromOf(reach), to, subject, text, html, attachments, 'o:tag': tag }
      await createTransport(plugin(options)).sendMail(mail)
    },
  },
  strapi: {
    version: async () => `${STRAPI.spec}, mailgun.js ${await installedVersion('mailgun.js-10')}`,
    async send(reach, folder) {
      await unpackFiles(STRAPI, folder)
      await addPackages(folder, { 'form-data': 'form-data', 'mailgun.js': 'mailgun.js-10' }, {})
      const provider = load(folder, STRAPI) as {
        init(options: object, settings: object): { send(mail: object): Promise<unknown> }
      }
      const { key, domain, url } = reach
      const settings = { defaultFrom: fromOf(reach), defaultReplyTo: `help@${domain}` }
      const attachment = [{ filename: MAIL.file.name, data: Buffer.from(MAIL.file.content) }]
      await provider
        .init({ key, domain, url }, settings)
        .send({ to, subject, text, html, attachment, 'o:tag': [tag] })
    },
  },
  n8n: {
    version: async () => N8N.spec,
    async send(reach, folder) {
      await unpackFiles(N8N, folder)
      await addPackages(folder, { lodash: 'lodash' }, N8N_STAND_INS)
      const { Mailgun } = load(folder, N8N) as { Mailgun: new () => N8nNode }
      await runNode(new Mailgun(), {
        parameters: {
          ...{
            fromEmail: fromOf(reach),
            toEmail: to,
            ccEmail: '',
            bccEmail: '',
            replyTo: '',
            customHeaders: {},
          },
          ...{ subject, text, html, tags: tag, attachments: 'data' },
        },
        credentials: { apiDomain: reach.https, emailDomain: reach.domain, apiKey: reach.key },
        binary: { name: MAIL.file.name, content: Buffer.from(MAIL.file.content) },
        authority: await readFile(reach.authorityFile, 'utf8'),
      })
    },
  },
  symfony: symfony('api'),
  'symfony-mime': symfony('https'),
  django: {
    version: () => debianVersion('python3-django-anymail'),
    async send(reach, folder) {
      await run('/usr/bin/python3', [program('with-anymail.py'), await writeJob(reach, folder)])
    },
  },
  rails: {
    needs: 'RUBYLIB',
    version: () => debianVersion('ruby-actionmailer'),
    async send(reach, folder) {
      const job = await writeJob(reach, folder)
      await run('env', [`SSL_CERT_FILE=${reach.authorityFile}`, 'ruby', program('rails.rb'), job])
    },
  },
  wordpress: {
    needs: 'INTEROP_WORDPRESS_PLUGIN',
    version: () => debianVersion('wordpress'),
    async send(reach, folder) {
      await run('php', [program('wordpress.php'), await writeJob(reach, folder)])
    },
  },
  supabase: {
    version: async () => GOMAIL,
    async send(reach, folder) {
      const job = await writeJob(reach, folder)
      await writeFile(join(folder, 'go.mod'), `module supabase\n\ngo 1.21\n\nrequire ${GOMAIL}\n`)
      await copyFile(program('supabase.go'), join(folder, 'main.go'))
      // Without the sending's authority, which the module proxy's certificate is not from.
      await exec('go', ['build', '-mod=mod', '.'], { cwd: folder, timeout: INSTALL_MAX_MS })
      await run('env', [`SSL_CERT_FILE=${reach.authorityFile}`, join(folder, 'supabase'), job])
    },
  },
  swaks: {
    version: () => debianVersion('swaks'),
    async send(reach, folder) {
      const file = join(folder, MAIL.file.name)
      await writeFile(file, MAIL.file.content)
      const { host, port, user, password } = reach.smtp
      await run('swaks', [
        ...['--server', host, '--port', `${port}`, '--from', `shop@${reach.domain}`, '--to', to],
        ...['--tls', '--tls-verify', '--tls-ca-path', reach.authorityFile],
        ...['--auth', 'PLAIN', '--auth-user', user, '--auth-password', password],
        ...[
          '--h-From',
          fromOf(reach),
          '--h-Subject',
          encodedWord(subject),
          '--add-header',
          `X-Mailgun-Tag: ${tag}`,
        ],
        ...['--attach-type', 'text/plain', '--attach-body', text],
        ...['--attach-type', 'text/html', '--attach-body', html],
        ...['--attach-type', 'text/plain', '--attach-name', MAIL.file.name, '--attach', `@${file}`],
      ])
    },
  },
  msmtp: {
    version: () => debianVersion('msmtp'),
    async send(reach, folder) {
      const { host, port, user, password } = reach.smtp
      const configuration = join(folder, 'msmtprc')
      const lines = [
        ...['account default', `host ${host}`, `port ${port}`, `from shop@${reach.domain}`],
        ...['tls on', 'tls_starttls on', `tls_trust_file ${reach.authorityFile}`],
        ...['auth plain', `user ${user}`, `password ${password}`],
      ]
      await writeFile(configuration, `${lines.join('\n')}\n`, { mode: 0o600 })
      const { message } = await createTransport({ streamTransport: true, buffer: true }).sendMail({
        ...{ from: fromOf(reach), to, subject, text, html, attachments },
        headers: { 'X-Mailgun-Tag': tag },
      })
      await run('msmtp', [`--file=${configuration}`, to], message as Buffer)
    },
  },
}

function symfony(form: 'api' | 'https'): Client {
  return {
    version: () => debianVersion('php-symfony-mailgun-mailer'),
    async send(reach, folder) {
      await run('php', [program('symfony.php'), await writeJob(reach, folder), form])
    },
  }
}

const program = (name: string) => join(import.meta.dirname, name)

/** What a program in another language needs to know. @returns path of the file */
async function writeJob(reach: Reach, folder: string): Promise<string> {
  const job = join(folder, 'job.json')
  await writeFile(job, JSON.stringify({ ...reach, from: fromOf(reach), mail: MAIL }))
  return job
}

const smtpOptions = async ({ smtp: { host, port, user, password }, authorityFile }: Reach) => ({
  ...{ host, port, secure: false, requireTLS: true, auth: { user, pass: password } },
  tls: { ca: await readFile(authorityFile, 'utf8') },
})

const encodedWord = (words: string) => `=?UTF-8?B?${Buffer.from(words).toString('base64')}?=`

const load = (folder: string, { files: [main = ''] }: PackageFiles): unknown =>
  createRequire(import.meta.url)(join(folder, main))

async function installedVersion(name: string): Promise<string> {
  const file = createRequire(import.meta.url).resolve(`${name}/package.json`)
  return (JSON.parse(await readFile(file, 'utf8')) as { version: string }).version
}

async function debianVersion(name: string): Promise<string> {
  const { stdout } = await exec('dpkg-query', ['--show', '--showformat', '${Package} ${Version}', name])
  return stdout
}

/** @throws Error with what the program printed, when it fails */
async function run(program: string, args: readonly string[], input?: Buffer): Promise<void> {
  const running = exec(program, args, { timeout: SEND_MAX_MS })
  running.child.stdin?.end(input)
  await running.catch((error: { stdout?: string; stderr?: string }) => {
    throw new Error(`${program} failed: ${error.stdout}${error.stderr}`, { cause: error })
  })
}
