# frozen_string_literal: true

# Sends a mail with Action Mailer and mailgun-ruby's delivery method: ruby rails.rb JOB-FILE
# Rails is Debian's; the gem mailgun-ruby is taken from Ruby's path. SSL_CERT_FILE: the authority to trust.
require 'json'
require 'logger'
require 'rails'
require 'action_mailer'
require 'mailgun-ruby'

JOB = JSON.parse(File.read(ARGV[0]))

Rails.logger = ActionMailer::Base.logger = Logger.new(nil)
ActionMailer::Base.delivery_method = :mailgun
ActionMailer::Base.mailgun_settings = {
  api_key: JOB['key'], domain: JOB['domain'], api_host: JOB['https']
}

# A mailer of an application.
class Orders < ActionMailer::Base
  def shipped(from, content)
    attachments[content['file']['name']] = content['file']['content']
    message = mail(from: from, to: content['to'], subject: content['subject']) do |format|
      format.text { render plain: content['text'] }
      format.html { render html: content['html'].html_safe }
    end
    message.mailgun_options = { 'tag' => content['tag'] }
  end
end

Orders.shipped(JOB['from'], JOB['mail']).deliver_now
