//! Encrypted connections: when, and whom they trust.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::config::{TlsMode, TlsRoots};
use crate::error::PgError;

/// Makes encrypted connections; `None` for plain ones.
pub(crate) fn connector(
    mode: TlsMode,
    roots: &TlsRoots,
    root_file: Option<&str>,
) -> Result<Option<MakeRustlsConnect>, PgError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| PgError::Tls { reason: error.to_string() })?;
    let config = match mode {
        TlsMode::Disable | TlsMode::FromUrl => return Ok(None),
        TlsMode::VerifyFull => {
            builder.with_root_certificates(trusted(roots, root_file)?).with_no_client_auth()
        }
        TlsMode::Require => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth(),
    };
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn trusted(roots: &TlsRoots, root_file: Option<&str>) -> Result<RootCertStore, PgError> {
    let wrong = |reason: String| PgError::Tls { reason };
    let pem = match (roots, root_file) {
        (TlsRoots::Pem(pem), _) => Some(pem.clone()),
        (TlsRoots::System, Some(path)) => {
            Some(std::fs::read(path).map_err(|error| wrong(format!("{path}: {error}")))?)
        }
        (TlsRoots::System, None) => None,
    };
    let mut store = RootCertStore::empty();
    match pem {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                store.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
        }
        None => {
            // Some systems hold certificates that nobody can read; those that can be are enough.
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if store.is_empty() {
        return Err(wrong("there is no root certificate to trust".to_owned()));
    }
    Ok(store)
}

/// Accepts any server, as `sslmode=require` asks for; it still has to own its certificate.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
