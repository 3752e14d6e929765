/** What is known of common providers: the fields of a new relay. */
import type { RelayFields } from './relay-fields.ts'

export interface Preset {
  label: string
  /** What to do at the provider. */
  hint: string
  fields: Partial<RelayFields>
}

const CLOUD = { port: '587', tls: 'starttls', returnPath: true } as const

export const PRESETS = {
  own: { label: 'Another server', hint: '', fields: {} },
  ses: {
    label: 'Amazon SES',
    hint: 'User and password are SMTP credentials of the SES console. Put your region into the host.',
    fields: { ...CLOUD, name: 'ses', host: 'email-smtp.eu-west-1.amazonaws.com', messageId: true },
  },
  microsoft: {
    label: 'Microsoft 365',
    hint: 'The user is the mailbox that sends, and its address the envelope sender. Register an application with the right SMTP.SendAsApp, and put your tenant into the token URL.',
    fields: {
      ...CLOUD,
      ...{ name: 'microsoft', host: 'smtp.office365.com', mechanism: 'xoauth2', grant: 'client_credentials' },
      tokenUrl: 'https://login.microsoftonline.com/TENANT/oauth2/v2.0/token',
      scope: 'https://outlook.office365.com/.default',
    },
  },
  gmail: {
    label: 'Gmail',
    hint: 'The user is the address of the account, and the envelope sender. The refresh token is for an OAuth client of yours.',
    fields: {
      ...CLOUD,
      ...{ name: 'gmail', host: 'smtp.gmail.com', mechanism: 'xoauth2', grant: 'refresh_token' },
      tokenUrl: 'https://oauth2.googleapis.com/token',
      scope: 'https://mail.google.com/',
      messageId: true,
    },
  },
  workspace: {
    label: 'Google Workspace relay',
    hint: 'Allow the address of this machine in the SMTP relay service of the Admin console.',
    fields: {
      name: 'workspace',
      host: 'smtp-relay.gmail.com',
      port: '587',
      tls: 'starttls',
      mechanism: 'none',
    },
  },
  sendgrid: {
    label: 'SendGrid',
    hint: 'The password is an API key with the right to send mail.',
    fields: { ...CLOUD, name: 'sendgrid', host: 'smtp.sendgrid.net', username: 'apikey' },
  },
  mailgun: {
    label: 'Mailgun',
    hint: 'The user is an SMTP credential of your domain there.',
    fields: { ...CLOUD, name: 'mailgun', host: 'smtp.mailgun.org' },
  },
  postfix: {
    label: 'Postfix on this machine',
    hint: 'It must take mail from 127.0.0.1, as it does by default.',
    fields: { name: 'postfix', host: '127.0.0.1', port: '25', tls: 'none', mechanism: 'none' },
  },
} as const satisfies Record<string, Preset>

export type PresetName = keyof typeof PRESETS
