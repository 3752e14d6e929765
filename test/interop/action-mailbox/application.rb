# A Rails application that takes received mail through Action Mailbox's Mailgun ingress, as its guide sets it up.
#
#     application.rb ADDRESS SIGNING_KEY FOLDER
#
# FOLDER is empty; it gets the database and the stored mails. Prints one JSON object per line: first the versions and the
# port, then what a mailbox read from each mail that the ingress accepted.
# Not HOST: the URI library would take it for its own.
ADDRESS, SIGNING_KEY, FOLDER = ARGV
ENV["RAILS_ENV"] = "production"
ENV["SECRET_KEY_BASE"] = "not secret"
ENV["MAILGUN_INGRESS_SIGNING_KEY"] = SIGNING_KEY
ENV["DATABASE_URL"] = "sqlite3:#{FOLDER}/database.sqlite3"

require "rails"
require "active_record/railtie"
require "active_storage/engine"
require "action_controller/railtie"
require "active_job/railtie"
require "action_mailer/railtie"
require "action_mailbox/engine"
require "base64"
require "json"
require "rack/handler/webrick"

class Application < Rails::Application
  config.root = FOLDER
  config.load_defaults 6.1
  config.eager_load = false
  config.hosts.clear
  config.secret_key_base = "not secret"
  config.log_level = :error
  config.logger = Logger.new($stderr)
  config.active_job.queue_adapter = :inline
  config.active_storage.service = :local
  config.active_storage.service_configurations = { local: { service: "Disk", root: "#{FOLDER}/files" } }
  config.action_mailbox.ingress = :mailgun
  # Would delete what it processed at once: the adapter runs jobs without their delay.
  config.action_mailbox.incinerate = false
end

Application.initialize!

ActiveRecord::Migration.verbose = false
migrations = %w[activestorage actionmailbox].map { |gem| "#{Gem.loaded_specs[gem].full_gem_path}/db/migrate" }
ActiveRecord::MigrationContext.new(migrations, ActiveRecord::SchemaMigration).migrate

def tell(value)
  $stdout.puts JSON.generate(value)
  $stdout.flush
end

class ApplicationMailbox < ActionMailbox::Base
  routing all: :everything
end

class EverythingMailbox < ApplicationMailbox
  def process
    text = mail.text_part || (mail unless mail.multipart? || mail.mime_type == "text/html")
    html = mail.html_part || (mail if mail.mime_type == "text/html")
    tell(
      status: inbound_email.status,
      message_id: inbound_email.message_id,
      original_to: mail.header["X-Original-To"]&.to_s,
      recipients: mail.recipients,
      from: mail.header["From"]&.decoded,
      subject: mail.subject,
      date: mail.date&.iso8601,
      custom: Array(mail.header["X-Custom"]).map(&:decoded),
      text: text&.decoded,
      html: html&.decoded,
      attachments: mail.attachments.map { |file| described(file) },
    )
  end

  private
    def described(file)
      { name: file.filename, type: file.mime_type, cid: (file.cid if file.header["Content-ID"]), base64: Base64.strict_encode64(file.decoded.b) }
    end
end

quiet = WEBrick::Log.new($stderr, WEBrick::Log::ERROR)
server = WEBrick::HTTPServer.new(BindAddress: ADDRESS, Port: 0, Logger: quiet, AccessLog: [])
server.mount "/", Rack::Handler::WEBrick, Rails.application
tell(versions: { rails: Rails.version, actionmailbox: Gem.loaded_specs["actionmailbox"].version.to_s, rack: Rack.release, ruby: RUBY_VERSION },
     port: server.listeners.first.addr[1])
trap("TERM") { server.shutdown }
server.start
